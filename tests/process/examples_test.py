# SPDX-License-Identifier: BSD-3-Clause
"""Every example of the guide and of the three manuals, run with the same command line against a
server of our own, and every usage text. The texts are theirs, word for word; where ours may differ
is named one by one below them."""
import re
import sys

sys.dont_write_bytecode = True
import tap
from tap import Client, Server, check, ended, equal, lines_of, mask_fields, run, sentences

# ---- theirs ----

USAGE = {
    "cxi_write_lat": '''\
Usage:
  cxi_write_lat [-d DEV] [-p PORT]
                          Start a server and wait for connection
  cxi_write_lat ADDR [OPTIONS]
                          Connect to server with address ADDR

Options:
  -d, --device=DEV        Device name (default: "cxi0")
  -v, --svc-id=SVC_ID     Service ID (default: 1)
  -p, --port=PORT         The port to listen on/connect to (default: 49194)
  -t, --tx-gpu=GPU        GPU index for allocating TX buf (default: no GPU)
  -r, --rx-gpu=GPU        GPU index for allocating RX buf (default: no GPU)
  -g, --gpu-type=TYPE     GPU type (AMD or NVIDIA or INTEL) (default type determined
                          by discovered GPU files on system)
  -n, --iters=ITERS       Number of iterations to run (default: 100)
  -D, --duration=SEC      Run for the specified number of seconds
      --warmup=WARMUP     Number of warmup iterations to run (default: 10)
      --latency-gap=USEC  Number of microseconds to wait between each
                          iteration (default: 1000)
  -s, --size=MIN[:MAX]    Write size or range to use (default: 8)
                          Ranges must be powers of 2 (e.g. "1:8192")
                          The maximum size is 4294967295
      --unrestricted      Use unrestricted writes
      --no-idc            Do not use Immediate Data Cmds
      --no-ll             Do not use Low-Latency command issuing
      --report-all        Report all latency measurements individually
                          This option is ignored when using --duration
      --use-hp=SIZE       Attempt to use huge pages when allocating
                          Size may be "2M" or "1G"
  -h, --help              Print this help text and exit
  -V, --version           Print the version and exit
''',
    "cxi_read_lat": '''\
Usage:
  cxi_read_lat [-d DEV] [-p PORT]
                          Start a server and wait for connection
  cxi_read_lat ADDR [OPTIONS]
                          Connect to server with address ADDR

Options:
  -d, --device=DEV        Device name (default: "cxi0")
  -v, --svc-id=SVC_ID     Service ID (default: 1)
  -p, --port=PORT         The port to listen on/connect to (default: 49194)
  -t, --tx-gpu=GPU        GPU index for allocating TX buf (default: no GPU)
  -r, --rx-gpu=GPU        GPU index for allocating RX buf (default: no GPU)
  -g, --gpu-type=TYPE     GPU type (AMD or NVIDIA or INTEL) (default type determined
                          by discovered GPU files on system)
  -n, --iters=ITERS       Number of iterations to run (default: 100)
  -D, --duration=SEC      Run for the specified number of seconds
      --warmup=WARMUP     Number of warmup iterations to run (default: 10)
      --latency-gap=USEC  Number of microseconds to wait between each
                          iteration (default: 1000)
  -s, --size=MIN[:MAX]    Read size or range to use (default: 8)
                          Ranges must be powers of 2 (e.g. "1:8192")
                          The maximum size is 4294967295
      --unrestricted      Use unrestricted reads
      --no-ll             Do not use Low-Latency command issuing
      --report-all        Report all latency measurements individually
                          This option is ignored when using --duration
      --use-hp=SIZE       Attempt to use huge pages when allocating
                          Size may be "2M" or "1G"
  -h, --help              Print this help text and exit
  -V, --version           Print the version and exit
''',
    "cxi_send_lat": '''\
Usage:
  cxi_send_lat [-d DEV] [-p PORT]
                          Start a server and wait for connection
  cxi_send_lat ADDR [OPTIONS]
                          Connect to server with address ADDR

Options:
  -d, --device=DEV        Device name (default: "cxi0")
  -v, --svc-id=SVC_ID     Service ID (default: 1)
  -p, --port=PORT         The port to listen on/connect to (default: 49194)
  -t, --tx-gpu=GPU        GPU index for allocating TX buf (default: no GPU)
  -r, --rx-gpu=GPU        GPU index for allocating RX buf (default: no GPU)
  -g, --gpu-type=TYPE     GPU type (AMD or NVIDIA or INTEL) (default type determined
                          by discovered GPU files on system)
  -n, --iters=ITERS       Number of iterations to run (default: 100)
  -D, --duration=SEC      Run for the specified number of seconds
      --warmup=WARMUP     Number of warmup iterations to run (default: 10)
      --latency-gap=USEC  Number of microseconds to wait between each
                          iteration (default: 1000)
  -s, --size=MIN[:MAX]    Send size or range to use (default: 8)
                          Ranges must be powers of 2 (e.g. "1:8192")
                          The maximum size is 4294967295
      --no-idc            Do not use Immediate Data Cmds for sizes <= 224 bytes
      --no-ll             Do not use Low-Latency command issuing
  -R, --rdzv              Use rendezvous PUTs
      --report-all        Report all latency measurements individually
                          This option is ignored when using --duration
      --use-hp=SIZE       Attempt to use huge pages when allocating
                          Size may be "2M" or "1G"
  -h, --help              Print this help text and exit
  -V, --version           Print the version and exit
''',
    "cxi_atomic_lat": '''\
Usage:
  cxi_atomic_lat [-d DEV] [-p PORT]
                          Start a server and wait for connection
  cxi_atomic_lat ADDR [OPTIONS]
                          Connect to server with address ADDR

Options:
  -d, --device=DEV        Device name (default: "cxi0")
  -v, --svc-id=SVC_ID     Service ID (default: 1)
  -p, --port=PORT         The port to listen on/connect to (default: 49194)
  -n, --iters=ITERS       Number of iterations to run (default: 100)
  -D, --duration=SEC      Run for the specified number of seconds
      --warmup=WARMUP     Number of warmup iterations to run (default: 10)
      --latency-gap=USEC  Number of microseconds to wait between each
                          iteration (default: 1000)
  -A, --atomic-op         The atomic operation to use (default: SUM)
  -C, --cswap-op          The CSWAP operation to use (default: EQ)
  -T, --atomic-type       The atomic type to use (default: UINT64)
      --fetching          Use fetching AMOs
      --matching          Use matching list entries at the target
      --unrestricted      Use unrestricted AMOs
      --no-idc            Do not use Immediate Data Cmds
      --no-ll             Do not use Low-Latency command issuing
      --report-all        Report all latency measurements individually
  -h, --help              Print this help text and exit
  -V, --version           Print the version and exit

Atomic Ops:
  MIN, MAX, SUM, LOR, LAND, BOR, BAND, LXOR, BXOR, SWAP, CSWAP, AXOR
CSWAP Ops:
  EQ, NE, LE, LT, GE, GT
Atomic Types:
  INT8, UINT8, INT16, UINT16, INT32, UINT32, INT64, UINT64, FLOAT, DOUBLE,
  FLOAT_COMPLEX, DOUBLE_COMPLEX, UINT128
''',
}

EXAMPLES = {
    "guide, cxi_write_lat": ('''\
$ cxi_write_lat
Listening on port 49194 for client to connect...
------------------------------------------------------------------------
    CXI RDMA Write Latency Test
Device           : cxi0
Service ID       : 1
Client TX Mem    : System
Server RX Mem    : System
Test Type        : Iteration
Iterations       : 5
Warmup Iters     : 10
Inter-Iter Gap   : 1000 microseconds
Write Size       : 8
IDC              : Enabled
LL Cmd Launch    : Enabled
Results Reported : All
Hugepages        : Disabled
Local (server)   : NIC 0x12 PID 0 VNI 10
Remote (client)  : NIC 0x13 PID 0
------------------------------------------------------------------------
See client for results.
------------------------------------------------------------------------
''', '''\
$ cxi_write_lat 10.1.1.8 -n 5 --report-all
------------------------------------------------------------------------
    CXI RDMA Write Latency Test
Device           : cxi0
Service ID       : 1
Client TX Mem    : System
Server RX Mem    : System
Test Type        : Iteration
Iterations       : 5
Warmup Iters     : 10
Inter-Iter Gap   : 1000 microseconds
Write Size       : 8
IDC              : Enabled
LL Cmd Launch    : Enabled
Results Reported : All
Hugepages        : Disabled
Local (client)   : NIC 0x13 PID 0 VNI 10
Remote (server)  : NIC 0x12 PID 0
------------------------------------------------------------------------
  WriteNum  Latency[us]
         0        2.008
         1        2.012
         2        2.008
         3        2.007
         4        2.008
------------------------------------------------------------------------
RDMA Size[B]      Writes     Min[us]     Max[us]    Mean[us]  StdDev[us]
           8           5        2.07        2.12        2.09        0.01
------------------------------------------------------------------------
'''),
    "guide, cxi_read_lat": ('''\
$ cxi_read_lat
Listening on port 49194 for client to connect...
------------------------------------------------------------------------
    CXI RDMA Read Latency Test
Device           : cxi0
Service ID       : 1
Client TX Mem    : System
Server RX Mem    : System
Test Type        : Duration
Duration         : 1 seconds
Warmup Iters     : 10
Inter-Iter Gap   : 1000 microseconds
Min Read Size    : 64
Max Read Size    : 1024
LL Cmd Launch    : Enabled
Results Reported : Summary
Hugepages        : Disabled
Local (server)   : NIC 0x12 PID 0 VNI 10
Remote (client)  : NIC 0x12 PID 1
------------------------------------------------------------------------
See client for results.
------------------------------------------------------------------------
''', '''\
$ cxi_read_lat 192.168.1.1 -D 1 -s 1:1024
------------------------------------------------------------------------
    CXI RDMA Read Latency Test
Device           : cxi0
Service ID       : 1
Client TX Mem    : System
Server RX Mem    : System
Test Type        : Duration
Duration         : 1 seconds
Warmup Iters     : 10
Inter-Iter Gap   : 1000 microseconds
Min Read Size    : 64
Max Read Size    : 1024
LL Cmd Launch    : Enabled
Results Reported : Summary
Hugepages        : Disabled
Local (client)   : NIC 0x12 PID 1 VNI 10
Remote (server)  : NIC 0x12 PID 0
------------------------------------------------------------------------
RDMA Size[B]       Reads     Min[us]     Max[us]    Mean[us]  StdDev[us]
          64       97181        2.61       13.91        2.70        0.07
         128       97080        2.63        5.55        2.71        0.07
         256       96887        2.66        6.17        2.74        0.07
         512       96548        2.71        5.44        2.77        0.05
        1024       95613        2.78       11.57        2.87        0.07
------------------------------------------------------------------------
'''),
    "guide, cxi_send_lat": ('''\
$ cxi_send_lat
Listening on port 49194 for client to connect...
----------------------------------------------------------------------
    CXI RDMA Send Latency Test
Device           : cxi0
Service ID       : 1
Client TX Mem    : System
Server RX Mem    : System
Test Type        : Iteration
Iterations       : 100
Warmup Iters     : 10
Inter-Iter Gap   : 1000 microseconds
Send Size        : 8
IDC              : Enabled
LL Cmd Launch    : Enabled
Results Reported : Summary
Hugepages        : Disabled
Local (server)   : NIC 0x12 PID 0 VNI 10
Remote (client)  : NIC 0x13 PID 0
----------------------------------------------------------------------
See client for results.
----------------------------------------------------------------------
''', '''\
$ cxi_send_lat 192.168.1.1 -s 1:1024
----------------------------------------------------------------------
    CXI RDMA Send Latency Test
Device           : cxi0
Service ID       : 1
Client TX Mem    : System
Server RX Mem    : System
Test Type        : Iteration
Iterations       : 100
Warmup Iters     : 10
Inter-Iter Gap   : 1000 microseconds
Send Size        : 8
IDC              : Enabled
LL Cmd Launch    : Enabled
Results Reported : Summary
Hugepages        : Disabled
Local (client)   : NIC 0x13 PID 0 VNI 10
Remote (server)  : NIC 0x12 PID 0
----------------------------------------------------------------------
     Bytes       Sends     Min[us]     Max[us]    Mean[us]  StdDev[us]
         8         100        1.60        2.65        1.64        0.13
----------------------------------------------------------------------
'''),
    "guide, cxi_atomic_lat": ('''\
$ cxi_atomic_lat
Listening on port 49194 for client to connect...
-----------------------------------------------------------------------
    CXI Atomic Memory Operation Latency Test
Device           : cxi0
Service ID       : 1
Test Type        : Iteration
Iterations       : 100
Warmup Iters     : 10
Inter-Iter Gap   : 1000 microseconds
Atomic Op        : NON-FETCHING SUM
Atomic Type      : UINT64
IDC              : Enabled
Matching LEs     : Disabled
Restricted       : Enabled
LL Cmd Launch    : Enabled
Results Reported : Summary
Local (server)   : NIC 0x12 PID 0 VNI 10
Remote (client)  : NIC 0x13 PID 0
-----------------------------------------------------------------------
See client for results.
-----------------------------------------------------------------------
''', '''\
$ cxi_atomic_lat cxi-nid0
-----------------------------------------------------------------------
    CXI Atomic Memory Operation Latency Test
Device           : cxi0
Service ID       : 1
Test Type        : Iteration
Iterations       : 100
Warmup Iters     : 10
Inter-Iter Gap   : 1000 microseconds
Atomic Op        : NON-FETCHING SUM
Atomic Type      : UINT64
IDC              : Enabled
Matching LEs     : Disabled
Restricted       : Enabled
LL Cmd Launch    : Enabled
Results Reported : Summary
Local (client)   : NIC 0x13 PID 0 VNI 10
Remote (server)  : NIC 0x12 PID 0
-----------------------------------------------------------------------
AMO Size[B]         Ops     Min[us]     Max[us]    Mean[us]  StdDev[us]
          8         100        2.48        2.63        2.50        0.06
-----------------------------------------------------------------------
'''),
    "send manual, example 1": ('''\
$ cxi_send_lat
Listening on port 49194 for client to connect...
----------------------------------------------------------------------
    CXI RDMA Send Latency Test
Device           : cxi0
Service ID       : 1
Client TX Mem    : System
Server RX Mem    : System
Test Type        : Iteration
Iterations       : 100
Warmup Iters     : 10
Inter-Iter Gap   : 1000 microseconds
Min Send Size    : 1
Max Send Size    : 1024
IDC              : Enabled
LL Cmd Launch    : Enabled
Results Reported : Summary
Hugepages        : Disabled
Local (server)   : NIC 0x12 PID 0 VNI 10
Remote (client)  : NIC 0x13 PID 0
----------------------------------------------------------------------
See client for results.
----------------------------------------------------------------------
''', '''\
$ cxi_send_lat 192.168.1.1 -s 1:1024
----------------------------------------------------------------------
    CXI RDMA Send Latency Test
Device           : cxi0
Service ID       : 1
Client TX Mem    : System
Server RX Mem    : System
Test Type        : Iteration
Iterations       : 100
Warmup Iters     : 10
Inter-Iter Gap   : 1000 microseconds
Min Send Size    : 1
Max Send Size    : 1024
IDC              : Enabled
LL Cmd Launch    : Enabled
Results Reported : Summary
Hugepages        : Disabled
Local (client)   : NIC 0x13 PID 0 VNI 10
Remote (server)  : NIC 0x12 PID 0
----------------------------------------------------------------------
     Bytes       Sends     Min[us]     Max[us]    Mean[us]  StdDev[us]
         1         100        1.60        4.32        1.65        0.27
         2         100        1.60        1.76        1.62        0.05
         4         100        1.60        1.75        1.62        0.05
         8         100        1.60        2.65        1.64        0.13
        16         100        1.60        1.76        1.62        0.05
        32         100        1.61        1.80        1.62        0.05
        64         100        1.61        1.76        1.63        0.04
       128         100        2.20        2.36        2.22        0.06
       256         100        2.26        2.43        2.28        0.06
       512         100        2.31        4.00        2.35        0.17
      1024         100        2.41        2.58        2.43        0.04
----------------------------------------------------------------------
'''),
    "send manual, example 2": ('''\
$ cxi_send_lat
Listening on port 49194 for client to connect...
----------------------------------------------------------------------
    CXI RDMA Send Latency Test
Device           : cxi0
Service ID       : 1
Client TX Mem    : System
Server RX Mem    : System
Test Type        : Iteration
Iterations       : 5
Warmup Iters     : 10
Inter-Iter Gap   : 1000 microseconds
Send Size        : 8
IDC              : Enabled
LL Cmd Launch    : Enabled
Results Reported : All
Hugepages        : Disabled
Local (server)   : NIC 0x12 PID 0 VNI 10
Remote (client)  : NIC 0x13 PID 0
----------------------------------------------------------------------
See client for results.
----------------------------------------------------------------------
''', '''\
$ cxi_send_lat 192.168.1.1 -n 5 --report-all
----------------------------------------------------------------------
    CXI RDMA Send Latency Test
Device           : cxi0
Service ID       : 1
Client TX Mem    : System
Server RX Mem    : System
Test Type        : Iteration
Iterations       : 5
Warmup Iters     : 10
Inter-Iter Gap   : 1000 microseconds
Send Size        : 8
IDC              : Enabled
LL Cmd Launch    : Enabled
Results Reported : All
Hugepages        : Disabled
Local (client)   : NIC 0x13 PID 0 VNI 10
Remote (server)  : NIC 0x12 PID 0
----------------------------------------------------------------------
   SendNum  Latency[us]
         0        1.688
         1        1.898
         2        1.688
         3        1.693
         4        1.683
----------------------------------------------------------------------
     Bytes       Sends     Min[us]     Max[us]    Mean[us]  StdDev[us]
         8           5        1.68        1.89        1.73        0.08
----------------------------------------------------------------------
'''),
    "read manual, example 1": ('''\
$ cxi_read_lat
Listening on port 49194 for client to connect...
------------------------------------------------------------------------
    CXI RDMA Read Latency Test
Device           : cxi0
Service ID       : 1
Client TX Mem    : System
Server RX Mem    : System
Test Type        : Duration
Duration         : 1 seconds
Warmup Iters     : 10
Inter-Iter Gap   : 1000 microseconds
Min Read Size    : 1
Max Read Size    : 1024
Restricted       : Enabled
LL Cmd Launch    : Enabled
Results Reported : Summary
Hugepages        : Disabled
Local (server)   : NIC 0x12 PID 0 VNI 10
Remote (client)  : NIC 0x12 PID 1
------------------------------------------------------------------------
See client for results.
------------------------------------------------------------------------
''', '''\
$ cxi_read_lat 192.168.1.1 -D 1 -s 1:1024
------------------------------------------------------------------------
    CXI RDMA Read Latency Test
Device           : cxi0
Service ID       : 1
Client TX Mem    : System
Server RX Mem    : System
Test Type        : Duration
Duration         : 1 seconds
Warmup Iters     : 10
Inter-Iter Gap   : 1000 microseconds
Min Read Size    : 1
Max Read Size    : 1024
Restricted       : Enabled
LL Cmd Launch    : Enabled
Results Reported : Summary
Hugepages        : Disabled
Local (client)   : NIC 0x12 PID 1 VNI 10
Remote (server)  : NIC 0x12 PID 0
------------------------------------------------------------------------
RDMA Size[B]       Reads     Min[us]     Max[us]    Mean[us]  StdDev[us]
           1       97084        2.62       77.59        2.70        0.25
           2       97135        2.61       13.44        2.70        0.07
           4       97303        2.60       12.75        2.69        0.08
           8       97268        2.59       33.23        2.69        0.12
          16       97205        2.61        4.99        2.70        0.04
          32       97221        2.61        5.65        2.70        0.05
          64       97181        2.61       13.91        2.70        0.07
         128       97080        2.63        5.55        2.71        0.07
         256       96887        2.66        6.17        2.74        0.07
         512       96548        2.71        5.44        2.77        0.05
        1024       95613        2.78       11.57        2.87        0.07
------------------------------------------------------------------------
'''),
    "read manual, example 2": ('''\
$ cxi_read_lat
Listening on port 49194 for client to connect...
------------------------------------------------------------------------
    CXI RDMA Read Latency Test
Device           : cxi0
Service ID       : 1
Client TX Mem    : System
Server RX Mem    : System
Test Type        : Iteration
Iterations       : 5
Warmup Iters     : 10
Inter-Iter Gap   : 1000 microseconds
Read Size        : 8
Restricted       : Enabled
LL Cmd Launch    : Enabled
Results Reported : All
Hugepages        : Disabled
Local (server)   : NIC 0x12 PID 0 VNI 10
Remote (client)  : NIC 0x12 PID 1
------------------------------------------------------------------------
See client for results.
------------------------------------------------------------------------
''', '''\
$ cxi_read_lat 192.168.1.1 -n 5 --report-all
------------------------------------------------------------------------
    CXI RDMA Read Latency Test
Device           : cxi0
Service ID       : 1
Client TX Mem    : System
Server RX Mem    : System
Test Type        : Iteration
Iterations       : 5
Warmup Iters     : 10
Inter-Iter Gap   : 1000 microseconds
Read Size        : 8
Restricted       : Enabled
LL Cmd Launch    : Enabled
Results Reported : All
Hugepages        : Disabled
Local (client)   : NIC 0x12 PID 1 VNI 10
Remote (server)  : NIC 0x12 PID 0
------------------------------------------------------------------------
   ReadNum  Latency[us]
         0        2.715
         1        2.715
         2        2.725
         3        2.725
         4        2.716
------------------------------------------------------------------------
RDMA Size[B]       Reads     Min[us]     Max[us]    Mean[us]  StdDev[us]
           8           5        2.71        2.72        2.71        0.03
------------------------------------------------------------------------
'''),
    "atomic manual, example 1": ('''\
$ cxi_atomic_lat
Listening on port 49194 for client to connect...
-----------------------------------------------------------------------
    CXI Atomic Memory Operation Latency Test
Device           : cxi0
Test Type        : Iteration
Iterations       : 100
Warmup Iters     : 10
Inter-Iter Gap   : 1000 microseconds
Atomic Op        : NON-FETCHING SUM
Atomic Type      : UINT64
IDC              : Enabled
Matching LEs     : Disabled
Restricted       : Enabled
LL Cmd Launch    : Enabled
Results Reported : Summary
Local (server)   : NIC 0x12 PID 0 VNI 10
Remote (client)  : NIC 0x13 PID 0
-----------------------------------------------------------------------
See client for results.
-----------------------------------------------------------------------
''', '''\
$ cxi_atomic_lat cxi-nid0
-----------------------------------------------------------------------
    CXI Atomic Memory Operation Latency Test
Device           : cxi0
Test Type        : Iteration
Iterations       : 100
Warmup Iters     : 10
Inter-Iter Gap   : 1000 microseconds
Atomic Op        : NON-FETCHING SUM
Atomic Type      : UINT64
IDC              : Enabled
Matching LEs     : Disabled
Restricted       : Enabled
LL Cmd Launch    : Enabled
Results Reported : Summary
Local (client)   : NIC 0x13 PID 0 VNI 10
Remote (server)  : NIC 0x12 PID 0
-----------------------------------------------------------------------
AMO Size[B]         Ops     Min[us]     Max[us]    Mean[us]  StdDev[us]
          8         100        2.48        2.63        2.50        0.06
-----------------------------------------------------------------------
'''),
    "atomic manual, example 2": ('''\
$ cxi_atomic_lat
Listening on port 49194 for client to connect...
-----------------------------------------------------------------------
    CXI Atomic Memory Operation Latency Test
Device           : cxi0
Service ID       : 1
Test Type        : Iteration
Iterations       : 5
Warmup Iters     : 10
Inter-Iter Gap   : 1000 microseconds
Atomic Op        : FETCHING SUM
Atomic Type      : UINT64
IDC              : Enabled
Matching LEs     : Disabled
Restricted       : Enabled
LL Cmd Launch    : Enabled
Results Reported : All
Local (server)   : NIC 0x12 PID 0 VNI 10
Remote (client)  : NIC 0x13 PID 0
-----------------------------------------------------------------------
See client for results.
-----------------------------------------------------------------------
''', '''\
$ cxi_atomic_lat cxi-nid0 --fetching --report-all -n 5
-----------------------------------------------------------------------
    CXI Atomic Memory Operation Latency Test
Device           : cxi0
Service ID       : 1
Test Type        : Iteration
Iterations       : 5
Warmup Iters     : 10
Inter-Iter Gap   : 1000 microseconds
Atomic Op        : FETCHING SUM
Atomic Type      : UINT64
IDC              : Enabled
Matching LEs     : Disabled
Restricted       : Enabled
LL Cmd Launch    : Enabled
Results Reported : All
Local (client)   : NIC 0x13 PID 0 VNI 10
Remote (server)  : NIC 0x12 PID 0
-----------------------------------------------------------------------
     OpNum  Latency[us]
         0        2.554
         1        2.585
         2        2.594
         3        2.565
         4        2.585
-----------------------------------------------------------------------
AMO Size[B]         Ops     Min[us]     Max[us]    Mean[us]  StdDev[us]
          8           5        2.55        2.59        2.57        0.05
-----------------------------------------------------------------------
'''),
}

# ---- ours ----

# Lines that we add: (the line stands behind one that begins so, its form). The first that fits.
ADDED = (
    (("Device           : ",), r"Fabric           : soft \(software NIC, shared memory\)"),
    (("Hugepages        : ", "Results Reported : "),
     r"Clock            : clock_gettime, \d+ ns per sample subtracted( \(\d+ % of the median\))?"),
)


def lines(*text):
    return "".join(line + "\n" for line in text)


def rows(like, *sizes):
    """Rows of a table like this one, for other sizes."""
    size, rest = re.fullmatch(r"( *\d+)(  .*)", like).groups()
    return lines(*(f"{value:>{len(size)}}{rest}" for value in sizes))


POWERS = [1 << i for i in range(11)]
READ_64 = "          64       97181        2.61       13.91        2.70        0.07"
SEND_8 = "         8         100        1.60        2.65        1.64        0.13"
# Misprints, and lines that the guide lacks: (what, which example, is replaced, by this). What there
# is to replace must stand in the text, in both ends' or in the client's alone.
MISPRINTS = (
    ("the guide's write header lacks Restricted", "guide, cxi_write_lat",
     lines("IDC              : Enabled"),
     lines("IDC              : Enabled", "Restricted       : Enabled")),
    ("the guide's read header lacks Restricted", "guide, cxi_read_lat",
     lines("Max Read Size    : 1024"),
     lines("Max Read Size    : 1024", "Restricted       : Enabled")),
    ("the guide's read example asks for 1:1024, its header shows 64", "guide, cxi_read_lat",
     lines("Min Read Size    : 64"), lines("Min Read Size    : 1")),
    ("the guide's read example asks for 1:1024, its rows begin with 64", "guide, cxi_read_lat",
     lines(READ_64), rows(READ_64, *POWERS[:7])),
    ("the guide's send example asks for 1:1024, its header shows 8", "guide, cxi_send_lat",
     lines("Send Size        : 8"),
     lines("Min Send Size    : 1", "Max Send Size    : 1024")),
    ("the guide's send example asks for 1:1024 and shows one row", "guide, cxi_send_lat",
     lines(SEND_8), rows(SEND_8, *POWERS)),
    ("the atomic manual's first example lacks Service ID", "atomic manual, example 1",
     lines("Device           : cxi0"),
     lines("Device           : cxi0", "Service ID       : 1")),
)
# Numbers that their machines and ours need not share, and nothing else.
PORT = (r"^(Listening on port )\d+( for client to connect\.\.\.)$", r"\1#\2")
NIC = (r"^((?:Local|Remote) \((?:client|server)\) *: NIC )0x[0-9a-f]+ PID \d+", r"\1# PID #")
SAMPLE = r"( *\d+)(  +\d+\.\d{3})"
ROW = r"( *\d+)(  +\d+)((?:  +\d+\.\d{2,3}){4})"


def corrected(example, theirs, client):
    """A transcript without the misprints of its example."""
    for what, where, misprint, right in MISPRINTS:
        if where == example and (client or not re.match(" *[0-9]", misprint)):
            equal(theirs.count(misprint), 1, what, theirs)
            theirs = theirs.replace(misprint, right)
    return theirs


def without_added(out):
    """Takes our lines out, each of which must stand at its place."""
    got = lines_of(out)
    for before, form in ADDED:
        at = [i for i, line in enumerate(got) if re.fullmatch(form, line)]
        equal(len(at), 1, f"lines of the form {form!r}", out)
        start = next(word for word in before if any(line.startswith(word) for line in got))
        check(got[at[0] - 1].startswith(start), f"{form!r} does not stand behind {start!r}", out)
        del got[at[0]]
    return got


def masked(line, counted):
    """Without the numbers that differ; sizes stay, and so do counts that were asked for."""
    for pattern, replacement in (PORT, NIC):
        line = re.sub(pattern, replacement, line)
    match = re.fullmatch(SAMPLE, line)
    if match:
        return match[1] + mask_fields(match[2])
    match = re.fullmatch(ROW, line)
    if match:
        return match[1] + (match[2] if counted else mask_fields(match[2])) + mask_fields(match[3])
    return line


def same_transcript(got, wanted):
    got, wanted = without_added(got), lines_of(wanted)
    counted = "Test Type        : Iteration" in wanted
    for number, (ours, theirs) in enumerate(zip(got, wanted), 1):
        equal(masked(ours, counted), masked(theirs, counted), f"line {number} is not theirs",
              "\n".join(got))
    equal(len(got), len(wanted), "as many lines as theirs", "\n".join(got))


def example(name):
    server_text, client_text = EXAMPLES[name]
    (server_line, server_out), (client_line, client_out) = (
        text.split("\n", 1) for text in (server_text, client_text))
    prompt, tool, *server_options = server_line.split()
    prompt, tool, _, *client_options = client_line.split()
    equal((prompt, server_options), ("$", []))
    server = Server(tap.tool_path(tool))
    client = Client(tap.tool_path(tool), server, *client_options)
    ended(client, 0)
    ended(server, 0)
    same_transcript(server.out, corrected(name, server_out, False))
    same_transcript(client.out, corrected(name, client_out, True))
    check(not sentences(server) and not sentences(client), "something on stderr", server, client)


# The longest first.
for name in sorted(EXAMPLES, key=lambda name: "-D 1" not in EXAMPLES[name][1]):
    tap.add(f"the example of the {name}", example, name)


@tap.test
def every_misprint_is_of_an_example():
    equal({where for _, where, _, _ in MISPRINTS} - set(EXAMPLES), set())


def usage(tool):
    """The guide's first, to its last line; then a heading of ours."""
    for option in ("--help", "-h"):
        shown = ended(run(tap.tool_path(tool), option), 0)
        got, theirs = lines_of(shown.out), lines_of(USAGE[tool])
        for number, (our, their) in enumerate(zip(got, theirs), 1):
            equal(our, their, f"line {number} of {tool} {option}")
        equal(got[len(theirs):len(theirs) + 2], ["", "Weft options:"], shown)
        equal(shown.err, "")


for tool in USAGE:
    tap.add(f"{tool} --help begins with the guide's usage text", usage, tool)

if __name__ == "__main__":
    tap.main(workers=3)
