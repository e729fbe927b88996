"""Which of the real model's answers are right: each table was laid beside its reference by a person."""

RIGHT = {
    "academic_how_many_publications_were_published_in_journals_whose_names",
    "academic_what_are_the_names_of_the_authors_who_have_written_publicati",
    "academic_what_are_the_titles_of_all_publications_ordered_alphabetical",
    "academic_what_are_the_top_3_publications_with_the_highest_number_of_c",
    "broker_how_many_distinct_customers_made_each_type_of_transaction_be",
    "broker_how_many_tac_are_there_from_each_country_for_customers_who_j",
    "car_dealership_how_many_sales_were_made_for_each_car_model_that_has_m5_in_i",
    "car_dealership_return_the_car_id_make_model_and_year_for_cars_that_have_no",
    "car_dealership_return_the_distinct_list_of_customer_ids_that_have_made_a_pu",
    "ewallet_return_merchants_merchant_id_and_name_who_have_not_issued_an",
    "restaurants_how_many_restaurants_are_there_in_each_city_order_the_result",
    "restaurants_how_many_restaurants_serve_italian_food_in_each_city",
    "restaurants_what_are_the_names_of_the_top_3_restaurants_with_the_highest",
}
