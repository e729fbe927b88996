"""``Run``: the resources of one run in one process, made when they are first needed."""


class Run:
    """The resources of one run in one process."""
