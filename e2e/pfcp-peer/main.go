// pfcp-peer is an independent PFCP peer for the end-to-end case of that name: its codec is github.com/wmnsk/go-pfcp, and
// what the Broadband Forum adds is written octet by octet (bbf.go). It shares no line with Sluice.
//
//	pfcp-peer cp LOCAL REMOTE PORT   plays the control plane of a user plane with the access port PORT
//	pfcp-peer up LOCAL REMOTE PORT   plays the user plane of a control plane that was told of PORT
//
// Each step is a line on standard output; what is not as it should be ends it with code 1. At a line that begins with
// "standing" it waits for a line on standard input, so that the caller can look at what the other side made of it.
package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: pfcp-peer cp|up LOCAL REMOTE PORT")
		os.Exit(2)
	}
	roles := map[string]func(*peer, string) error{"cp": playControlPlane, "up": playUserPlane}
	play, known := roles[os.Args[1]]
	local, remote := net.ParseIP(os.Args[2]).To4(), net.ParseIP(os.Args[3]).To4()
	if !known || local == nil || remote == nil {
		fmt.Fprintln(os.Stderr, "pfcp-peer: a role, two IPv4 addresses and a port are expected")
		os.Exit(2)
	}
	p, err := listen(local, remote)
	if err == nil {
		err = play(p, os.Args[4])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pfcp-peer:", err)
		os.Exit(1)
	}
	fmt.Println("done")
}

// standing says what is there now and waits until the caller has looked.
func standing(what string) {
	fmt.Println("standing:", what)
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
}
