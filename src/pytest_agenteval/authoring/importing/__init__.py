"""Read the questions a team already has, in the formats of other tools, and write them as cases.

``sources`` reads a file into records, ``formats`` knows what the records mean, ``case_file`` writes
the cases and keeps them up to date. Nothing that is read is executed.
"""
