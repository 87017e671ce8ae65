package main

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/wmnsk/go-pfcp/ie"
	"github.com/wmnsk/go-pfcp/message"
)

// ourSEID is what we call the default session.
const ourSEID = 0x5eed

func playUserPlane(p *peer, port string) error {
	if err := in("associated", p.beAssociated()); err != nil {
		return err
	}
	if err := in("default session", p.takeDefaultSession(port)); err != nil {
		return err
	}
	beat, err := p.ask(message.NewHeartbeatRequest(p.next(), ie.NewRecoveryTimeStamp(p.started), nil))
	if err == nil && beat.(*message.HeartbeatResponse).RecoveryTimeStamp == nil {
		err = errors.New("no Recovery Time Stamp")
	}
	if err := in("heartbeat", err); err != nil {
		return err
	}
	standing("a port that is open")
	return nil
}

// beAssociated answers the control plane's Association Setup Request.
func (p *peer) beAssociated() error {
	m, err := p.expect(message.MsgTypeAssociationSetupRequest, 20*time.Second)
	if err != nil {
		return err
	}
	request := m.(*message.AssociationSetupRequest)
	if request.NodeID == nil || request.RecoveryTimeStamp == nil {
		return errors.New("Node ID or Recovery Time Stamp is missing")
	}
	if name, err := request.NodeID.NodeID(); err != nil || name == "" {
		return fmt.Errorf("Node ID %q: %v", name, err)
	}
	return p.send(message.NewAssociationSetupResponse(request.Sequence(), p.nodeID(),
		ie.NewCause(ie.CauseRequestAccepted), ie.NewRecoveryTimeStamp(p.started),
		ie.NewUPFunctionFeatures(0, 0, 0, 0, 0, 0, 0, 0), vendor(bbfUPFunctionFeatures, 1, 0, 0, 0), sluiceFeatures()))
}

func (p *peer) takeDefaultSession(port string) error {
	m, err := p.expect(message.MsgTypeSessionEstablishmentRequest, 10*time.Second)
	if err != nil {
		return err
	}
	request := m.(*message.SessionEstablishmentRequest)
	if request.NodeID == nil || request.CPFSEID == nil || request.PDNType != nil {
		return errors.New("Node ID or F-SEID is missing, or a PDN Type is there")
	}
	name, err := request.CPFSEID.FSEID()
	if err != nil {
		return err
	}
	if !name.IPv4Address.Equal(p.remote) {
		return fmt.Errorf("F-SEID with address %v", name.IPv4Address)
	}
	if err := p.checkRules(request, port); err != nil {
		return err
	}
	return p.send(message.NewSessionEstablishmentResponse(0, 0, name.SEID, request.Sequence(), 0, p.nodeID(),
		ie.NewCause(ie.CauseRequestAccepted), ie.NewFSEID(ourSEID, p.local, nil)))
}

// checkRules looks for the two rules of TR-459's default tunnel: discovery up with NSH, answers down.
func (p *peer) checkRules(request *message.SessionEstablishmentRequest, port string) error {
	up, down := false, false
	for _, pdr := range request.CreatePDR {
		pdi, err := pdr.PDI()
		if err != nil {
			return err
		}
		source, err := pdr.SourceInterface()
		if err != nil {
			return err
		}
		far, err := farOf(request, pdr)
		if err != nil {
			return err
		}
		switch source {
		case access:
			up = true
			err = p.checkUplink(pdi, far, port)
		case cpFunction:
			down = true
			err = p.checkDownlink(request, pdr, far)
		default:
			err = fmt.Errorf("a rule from interface %d", source)
		}
		if err != nil {
			return err
		}
	}
	if !up || !down {
		return fmt.Errorf("a rule up: %v, a rule down: %v", up, down)
	}
	return nil
}

func farOf(request *message.SessionEstablishmentRequest, pdr *ie.IE) (*ie.IE, error) {
	want, err := pdr.FARID()
	if err != nil {
		return nil, err
	}
	for _, far := range request.CreateFAR {
		if id, err := far.FARID(); err == nil && id == want {
			return far, nil
		}
	}
	return nil, fmt.Errorf("no FAR %d", want)
}

// towards gives a FAR's Forwarding Parameters, which must lead to this interface.
func towards(destination uint8, far *ie.IE) ([]*ie.IE, error) {
	parameters, err := far.ForwardingParameters()
	if err != nil {
		return nil, err
	}
	to := find(parameters, ie.DestinationInterface, 0)
	if to == nil {
		return nil, errors.New("no Destination Interface")
	}
	if found, err := to.DestinationInterface(); err != nil || found != destination {
		return nil, fmt.Errorf("towards interface %d: %v", found, err)
	}
	return parameters, nil
}

func (p *peer) checkUplink(pdi []*ie.IE, far *ie.IE, port string) error {
	name := find(pdi, bbfLogicalPort, bbf)
	if name == nil || string(name.Payload) != port {
		return fmt.Errorf("Logical Port %v", name)
	}
	filter := find(pdi, ie.EthernetPacketFilter, 0)
	if filter == nil {
		return errors.New("no Ethernet Packet Filter")
	}
	if ethertype, err := filter.Ethertype(); err != nil || ethertype != discovery {
		return fmt.Errorf("EtherType %#x: %v", ethertype, err)
	}
	parameters, err := towards(cpFunction, far)
	if err != nil {
		return err
	}
	creation := find(parameters, ie.OuterHeaderCreation, 0)
	if creation == nil {
		return errors.New("no Outer Header Creation")
	}
	header, err := creation.OuterHeaderCreation()
	if err != nil {
		return err
	}
	if header.OuterHeaderCreationDescription != 0x0100 || header.TEID == 0 || !header.IPv4Address.Equal(p.remote) {
		return fmt.Errorf("Outer Header Creation %+v", header)
	}
	nsh := find(parameters, bbfOuterHeaderCreation, bbf)
	if nsh == nil || !bytes.HasPrefix(nsh.Payload, u16(cprNSH)) {
		return fmt.Errorf("BBF Outer Header Creation %v", nsh)
	}
	return nil
}

func (p *peer) checkDownlink(request *message.SessionEstablishmentRequest, pdr, far *ie.IE) error {
	if _, err := towards(access, far); err != nil {
		return err
	}
	if removal, err := pdr.OuterHeaderRemovalDescription(); err != nil || removal != 6 {
		return fmt.Errorf("Outer Header Removal %d: %v", removal, err)
	}
	for _, endpoint := range request.CreateTrafficEndpoint {
		teid, err := endpoint.FTEID()
		if err != nil {
			return err
		}
		if teid.TEID == 0 || !teid.IPv4Address.Equal(p.local) {
			return fmt.Errorf("F-TEID %+v", teid)
		}
		return nil
	}
	return errors.New("no traffic endpoint")
}
