"""The one exception for what a user can put right."""


class UserError(Exception):
    """A mistake that a user can put right: printed as one line, without a traceback, exit status 1.

    The message names the flag or file, what was found and what to do.
    """
