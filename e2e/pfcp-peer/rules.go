package main

import "github.com/wmnsk/go-pfcp/ie"

// Interfaces (TS 29.244 §8.2.2 and §8.2.24).
const (
	access     = 0
	core       = 1
	cpFunction = 3
)

const (
	drop    = 0x01
	forward = 0x02
)

// pdr is Create PDR; elements beyond the PDI follow it.
func pdr(id uint16, precedence uint32, pdi *ie.IE, far uint32, more ...*ie.IE) *ie.IE {
	elements := []*ie.IE{ie.NewPDRID(id), ie.NewPrecedence(precedence), pdi, ie.NewFARID(far)}
	return ie.NewCreatePDR(append(elements, more...)...)
}

// far is Create FAR; without parameters it drops.
func far(id uint32, parameters ...*ie.IE) *ie.IE {
	if len(parameters) == 0 {
		return ie.NewCreateFAR(ie.NewFARID(id), ie.NewApplyAction(drop))
	}
	return ie.NewCreateFAR(ie.NewFARID(id), ie.NewApplyAction(forward), ie.NewForwardingParameters(parameters...))
}

func (cp controlPlane) localTEID(teid uint32) *ie.IE {
	return ie.NewFTEID(0x01, teid, cp.remote, nil, 0)
}

// fromControlPlane is the PDR of a tunnel's downlink, by traffic endpoint 4.
func fromControlPlane() *ie.IE {
	pdi := ie.NewPDI(ie.NewSourceInterface(cpFunction), ie.NewTrafficEndpointID(4))
	return pdr(2, 100, pdi, 2, ie.NewOuterHeaderRemoval(6, 0))
}

// defaultSession takes discovery from the port, sends answers to it, and announces a net of the pool.
func (cp controlPlane) defaultSession() []*ie.IE {
	discoveryFrames := ie.NewEthernetPacketFilter(ie.NewEthertype(discovery))
	net := ie.NewPDI(ie.NewSourceInterface(core), ie.NewNetworkInstance(instance), ie.NewFramedRoute(homeNet))
	return []*ie.IE{
		pdr(1, 100, ie.NewPDI(ie.NewSourceInterface(access), discoveryFrames, logicalPort(cp.port)), 1),
		fromControlPlane(),
		pdr(0x1000, 0xffffffff, net, 3),
		far(1, ie.NewDestinationInterface(cpFunction), gtpu(1, cp.local), outerHeader(cprNSH)),
		far(2, ie.NewDestinationInterface(access)),
		far(3),
		ie.NewCreateTrafficEndpoint(ie.NewTrafficEndpointID(4), cp.localTEID(1)),
	}
}

// line is a traffic endpoint on the subscriber's line.
func (cp controlPlane) line(id uint8, more ...*ie.IE) *ie.IE {
	elements := []*ie.IE{
		ie.NewTrafficEndpointID(id),
		logicalPort(cp.port),
		ie.New(ie.STAG, tag(sTag)),
		ie.New(ie.CTAG, tag(cTag)),
		ie.NewMACAddress(homeMAC, gatewayMAC, nil, nil),
		pppoeSession(sessionID),
	}
	return ie.NewCreateTrafficEndpoint(append(elements, more...)...)
}

// subscriberSession is what a session begins with: control packets both ways, a URR, a QER.
func (cp controlPlane) subscriberSession() []*ie.IE {
	control := ie.NewPDI(ie.NewSourceInterface(access), ie.NewTrafficEndpointID(1),
		ie.NewEthernetPacketFilter(ie.NewEthertype(discovery)), pppControl())
	return []*ie.IE{
		pdr(1, 100, control, 1),
		fromControlPlane(),
		far(1, ie.NewDestinationInterface(cpFunction), gtpu(0x11, cp.local)),
		far(2, ie.NewDestinationInterface(access)),
		ie.NewCreateURR(ie.NewURRID(1), ie.NewMeasurementMethod(0, 1, 1), ie.NewReportingTriggers(0, 0),
			ie.NewMeasurementInformation(0x10)),
		ie.NewCreateQER(ie.NewQERID(1), ie.NewQERCorrelationID(subscriber), ie.NewGateStatus(0, 0)),
		cp.line(1),
		ie.NewCreateTrafficEndpoint(ie.NewTrafficEndpointID(4), cp.localTEID(0x11)),
		ie.NewPDNType(ie.PDNTypeEthernet),
	}
}

// ipv4 adds the subscriber's IPv4 address.
func (cp controlPlane) ipv4() []*ie.IE {
	address := func() *ie.IE { return ie.NewUEIPAddress(0x02, homeAddress, "", 0, 0) }
	where := ie.NewNetworkInstance(instance)
	measured := []*ie.IE{ie.NewURRID(1), ie.NewQERID(1)}
	up := ie.NewPDI(ie.NewSourceInterface(access), ie.NewTrafficEndpointID(2), pppProtocol(0x0021))
	down := ie.NewPDI(ie.NewSourceInterface(core), ie.NewTrafficEndpointID(3))
	return []*ie.IE{
		pdr(3, 200, up, 3, append(measured, vendor(bbfOuterHeaderRemoval, removePPP))...),
		pdr(4, 200, down, 4, measured...),
		far(3, ie.NewDestinationInterface(core), where),
		far(4, ie.NewDestinationInterface(access), ie.NewTrafficEndpointID(2), outerHeader(trafficEndpoint), mtu(1492)),
		cp.line(2, where, address()),
		ie.NewCreateTrafficEndpoint(ie.NewTrafficEndpointID(3), where, address()),
	}
}
