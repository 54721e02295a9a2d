# SPDX-License-Identifier: BSD-3-Clause
"""Every example of the guide and of the three manuals, run with the same command line against a
server of our own, and every usage text. The texts are the files in transcripts/."""
import sys

sys.dont_write_bytecode = True
import tap
import transcripts
from tap import Client, Server, check, ended, equal, lines_of, run, sentences


def example(name):
    tool, *server_options = transcripts.command(name, "server")
    client_tool, _, *client_options = transcripts.command(name, "client")
    equal((client_tool, server_options), (tool, []))
    server = Server(tap.tool_path(tool))
    client = Client(tap.tool_path(tool), server, *client_options)
    ended(client, 0)
    ended(server, 0)
    transcripts.same(server, name, "server")
    transcripts.same(client, name, "client")
    check(not sentences(server) and not sentences(client), "something on stderr", server, client)


# The longest first.
for name in sorted(transcripts.EXAMPLES,
                   key=lambda name: "-D" not in transcripts.command(name, "client")):
    tap.add(f"the example of the {name}", example, name)


@tap.test
def every_tool_and_every_misprint_has_its_transcript():
    equal(sorted(transcripts.USAGE), ["cxi_atomic_lat", "cxi_read_lat", "cxi_send_lat",
                                      "cxi_write_lat"])
    equal(len(transcripts.EXAMPLES), 10)
    equal({where for _, where, _, _ in transcripts.MISPRINTS} -
          set(transcripts.EXAMPLES), set())


def usage(tool):
    """The guide's first, to its last line; then a heading of ours."""
    for option in ("--help", "-h"):
        shown = ended(run(tap.tool_path(tool), option), 0)
        got, theirs = lines_of(shown.out), lines_of(transcripts.USAGE[tool])
        for number, (our, their) in enumerate(zip(got, theirs), 1):
            equal(our, their, f"line {number} of {tool} {option}")
        equal(got[len(theirs):len(theirs) + 2], ["", "Weft options:"], shown)
        equal(shown.err, "")


for tool in sorted(transcripts.USAGE):
    tap.add(f"{tool} --help begins with the guide's usage text", usage, tool)

if __name__ == "__main__":
    tap.main(workers=3)
