"""A property that is asked for once; unlike Python's own up to 3.11 it holds no lock meanwhile.

Several learners may ask at the same time, and an answer comes when all of them wait for one: a
lock that all instances of a class share would keep them from it for ever.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    once = cached_property
else:

    class once(cached_property):
        """Call the method when the value is first asked for, and keep it in the instance.

        Examples
        --------
        >>> class Rows:
        ...     asked = 0
        ...     @once
        ...     def count(self):
        ...         self.asked += 1
        ...         return 7
        >>> rows = Rows()
        >>> rows.count + rows.count, rows.asked
        (14, 1)
        """

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            """Find it; once found it stands before this in the instance."""
            if instance is None:
                return self
            found = instance.__dict__[self.attrname] = self.func(instance)
            return found
