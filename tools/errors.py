"""What a step behind `make` raises."""


class StepError(Exception):
    """A step cannot go on. The text is for the person at the terminal: what happened, and what to do."""
