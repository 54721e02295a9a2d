# SPDX-License-Identifier: BSD-3-Clause
"""NICs of the software Cassini in tests/doubles/cassini."""
import itertools
import os

import tap

_numbers = itertools.count()


def nics(**more):
    """An environment with NICs that no other test has."""
    return {"LD_LIBRARY_PATH": os.path.join(tap.build_folder(), "tests/doubles/cassini"),
            "CASSINI_NAME": f"{os.getpid()}-{next(_numbers)}", **more}
