# SPDX-License-Identifier: BSD-3-Clause
"""spack_args.py RECIPE +all | -all: the words that the Spack recipe gives to meson, with every variant or with
none. Spack itself is not needed: what the recipe uses of it is defined here."""
import ast
import pathlib
import sys
import types


class Spec:
    def __init__(self, variants):
        self.variants = variants

    def satisfies(self, text):
        return self.variants[text[1:]] == (text[0] == "+")


class MesonPackage:
    """What a recipe derives from."""


def recipe(path, on):
    """The package of the recipe, and the variants that it has."""
    variants = {}
    said = {name: (lambda *args, **keys: None) for name in ("license", "version", "depends_on")}
    said["variant"] = lambda name, **keys: variants.update({name: on})
    module = types.ModuleType("spack.package")
    module.__dict__.update(said, MesonPackage=MesonPackage)
    sys.modules.update({"spack": types.ModuleType("spack"), "spack.package": module})
    space = {}
    exec(compile(ast.parse(pathlib.Path(path).read_text(encoding="utf-8")), path, "exec"), space)
    package = space["Weft"]()
    package.spec = Spec(variants)
    return package, variants


if __name__ == "__main__":
    print(*recipe(sys.argv[1], sys.argv[2] == "+all")[0].meson_args())
