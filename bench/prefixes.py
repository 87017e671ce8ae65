#!/usr/bin/python3
# The networks of Debian's libloc-database that have an origin, one a line: what a full table looks like.
import sys

import location

for network in location.Database("/usr/share/libloc-location/location.db").networks:
    if network.asn:
        sys.stdout.write(f"{network}\n")
