package main

import (
	"encoding/binary"
	"net"

	"github.com/wmnsk/go-pfcp/ie"
)

// The Broadband Forum's elements (TR-459), enterprise 3561.
const (
	bbf                    = 3561
	bbfUPFunctionFeatures  = 32768
	bbfLogicalPort         = 32769
	bbfOuterHeaderCreation = 32770
	bbfOuterHeaderRemoval  = 32771
	bbfPPPoESessionID      = 32772
	bbfPPPProtocol         = 32773
	bbfMTU                 = 32776
)

const (
	cprNSH          = 0x0100 // BBF Outer Header Creation: NSH with the logical port
	trafficEndpoint = 0x0200 // ... and: what the linked traffic endpoint needs
	removePPP       = 3      // BBF Outer Header Removal: Ethernet, PPPoE and PPP
	discovery       = 0x8863 // EtherType of PPPoE discovery
)

// Sluice's own feature: the default session may have a rule from the control plane to the access side. Enterprise 32473 is the
// one for examples (RFC 5612).
func sluiceFeatures() *ie.IE {
	return ie.NewVendorSpecificIE(0x8001, 32473, []byte{0x01})
}

func vendor(kind uint16, payload ...byte) *ie.IE {
	return ie.NewVendorSpecificIE(kind, bbf, payload)
}

func u16(value uint16) []byte { return binary.BigEndian.AppendUint16(nil, value) }

func logicalPort(name string) *ie.IE { return vendor(bbfLogicalPort, []byte(name)...) }

func pppoeSession(id uint16) *ie.IE { return vendor(bbfPPPoESessionID, u16(id)...) }

func mtu(octets uint16) *ie.IE { return vendor(bbfMTU, u16(octets)...) }

// pppControl means every PPP protocol but those of the network layer; pppProtocol a single one.
func pppControl() *ie.IE { return vendor(bbfPPPProtocol, 4) }

func pppProtocol(number uint16) *ie.IE {
	return vendor(bbfPPPProtocol, append([]byte{1}, u16(number)...)...)
}

// outerHeader is BBF Outer Header Creation: a bit mask, and the tunnel and session ids of L2TP, which are not used.
func outerHeader(mask uint16) *ie.IE {
	return vendor(bbfOuterHeaderCreation, append(u16(mask), 0, 0, 0, 0)...)
}

// tag is the payload of S-TAG and C-TAG (TS 29.244 §8.2.94): the VID is present, its upper four bits are in the first octet.
func tag(vid uint16) []byte { return []byte{0x04, byte(vid>>8) << 4, byte(vid)} }

// gtpu is Outer Header Creation with GTP-U/UDP/IPv4.
func gtpu(teid uint32, to net.IP) *ie.IE {
	return ie.NewOuterHeaderCreation(0x0100, teid, to.String(), "", 0, 0, 0)
}

// children are the elements of a group; those of a vendor's are not taken apart by go-pfcp itself.
func children(group *ie.IE) ([]*ie.IE, error) {
	if len(group.ChildIEs) > 0 {
		return group.ChildIEs, nil
	}
	return ie.ParseMultiIEs(group.Payload)
}

// find is the first element of this type and enterprise (0 for 3GPP) in a list.
func find(list []*ie.IE, kind, enterprise uint16) *ie.IE {
	for _, element := range list {
		if element.Type == kind && element.EnterpriseID == enterprise {
			return element
		}
	}
	return nil
}
