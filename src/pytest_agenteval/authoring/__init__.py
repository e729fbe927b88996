"""Make cases: from conversations, from answers, from files of other tools."""
