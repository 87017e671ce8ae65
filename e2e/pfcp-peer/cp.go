package main

import (
	"errors"
	"fmt"
	"net"

	"github.com/wmnsk/go-pfcp/ie"
	"github.com/wmnsk/go-pfcp/message"
)

// The subscriber: a home behind tags 100.7.
const (
	sTag, cTag  = 100, 7
	sessionID   = 0x1001
	subscriber  = 77
	homeAddress = "100.64.0.7"
	homeNet     = "100.64.0.0/24"
	instance    = "default"
)

var (
	homeMAC    = net.HardwareAddr{2, 0, 0, 0, 0, 7}
	gatewayMAC = net.HardwareAddr{2, 0, 0, 0, 0xff, 1}
)

// controlPlane remembers what the user plane calls its sessions.
type controlPlane struct {
	*peer
	port string
}

func playControlPlane(p *peer, port string) error {
	cp := controlPlane{p, port}
	if err := in("associated", cp.associate()); err != nil {
		return err
	}
	defaults, err := cp.establish(1, cp.defaultSession()...)
	if err := in("default session", err); err != nil {
		return err
	}
	home, err := cp.establish(2, cp.subscriberSession()...)
	if err := in("subscriber session", err); err != nil {
		return err
	}
	if _, err := cp.modify(home, ie.CauseRequestAccepted, cp.ipv4()...); in("IPv4 added", err) != nil {
		return err
	}
	standing("a subscriber with IPv4")
	if err := in("usage queried", cp.query(home)); err != nil {
		return err
	}
	if err := in("refusals", cp.refusals(home)); err != nil {
		return err
	}
	if err := in("subscriber session deleted", cp.delete(home, true)); err != nil {
		return err
	}
	if err := in("default session deleted", cp.delete(defaults, false)); err != nil {
		return err
	}
	return in("released", cp.release())
}

func (cp controlPlane) associate() error {
	m, err := cp.ask(message.NewAssociationSetupRequest(cp.next(), cp.nodeID(), ie.NewRecoveryTimeStamp(cp.started),
		ie.NewCPFunctionFeatures(0)))
	if err != nil {
		return err
	}
	answer := m.(*message.AssociationSetupResponse)
	if err := answered(answer.Cause, ie.CauseRequestAccepted); err != nil {
		return err
	}
	if answer.NodeID == nil || answer.RecoveryTimeStamp == nil || answer.UPFunctionFeatures == nil {
		return errors.New("Node ID, Recovery Time Stamp or UP Function Features is missing")
	}
	features := find(answer.IEs, bbfUPFunctionFeatures, bbf)
	if features == nil || len(features.Payload) != 4 || (features.Payload[0]|features.Payload[3])&1 == 0 {
		return fmt.Errorf("BBF UP Function Features without PPPoE: %v", features)
	}
	beat, err := cp.ask(message.NewHeartbeatRequest(cp.next(), ie.NewRecoveryTimeStamp(cp.started), nil))
	if err != nil {
		return err
	}
	now, err := beat.(*message.HeartbeatResponse).RecoveryTimeStamp.RecoveryTimeStamp()
	if err != nil {
		return err
	}
	if then, err := answer.RecoveryTimeStamp.RecoveryTimeStamp(); err != nil || !then.Equal(now) {
		return fmt.Errorf("started at %v or at %v: %v", then, now, err)
	}
	return nil
}

// establish makes a session and gives the user plane's name for it.
func (cp controlPlane) establish(seid uint64, rules ...*ie.IE) (uint64, error) {
	elements := append([]*ie.IE{cp.nodeID(), ie.NewFSEID(seid, cp.local, nil)}, rules...)
	m, err := cp.ask(message.NewSessionEstablishmentRequest(0, 0, 0, cp.next(), 0, elements...))
	if err != nil {
		return 0, err
	}
	answer := m.(*message.SessionEstablishmentResponse)
	if err := answered(answer.Cause, ie.CauseRequestAccepted); err != nil {
		return 0, fmt.Errorf("%w, offending %v, rule %v", err, answer.OffendingIE, answer.FailedRuleID)
	}
	if answer.SEID() != seid {
		return 0, fmt.Errorf("answered to SEID %d", answer.SEID())
	}
	if answer.UPFSEID == nil {
		return 0, errors.New("no F-SEID of the user plane")
	}
	name, err := answer.UPFSEID.FSEID()
	if err != nil {
		return 0, err
	}
	if !name.IPv4Address.Equal(cp.remote) {
		return 0, fmt.Errorf("F-SEID with address %v", name.IPv4Address)
	}
	return name.SEID, nil
}

func (cp controlPlane) modify(seid uint64, cause uint8, elements ...*ie.IE) (*message.SessionModificationResponse, error) {
	m, err := cp.ask(message.NewSessionModificationRequest(0, 0, seid, cp.next(), 0, elements...))
	if err != nil {
		return nil, err
	}
	answer := m.(*message.SessionModificationResponse)
	if err := answered(answer.Cause, cause); err != nil {
		return nil, fmt.Errorf("%w, offending %v, rule %v", err, answer.OffendingIE, answer.FailedRuleID)
	}
	return answer, nil
}

func (cp controlPlane) query(seid uint64) error {
	answer, err := cp.modify(seid, ie.CauseRequestAccepted, ie.NewQueryURR(ie.NewURRID(1)))
	if err != nil {
		return err
	}
	return usage(answer.UsageReport)
}

// refusals asks for what cannot be done; the session stays as it is.
func (cp controlPlane) refusals(home uint64) error {
	answer, err := cp.modify(home, ie.CauseRuleCreationModificationFailure, ie.NewRemovePDR(ie.NewPDRID(99)))
	if err != nil {
		return fmt.Errorf("a rule that is not there: %w", err)
	}
	if answer.FailedRuleID == nil {
		return errors.New("the rule that is not there is not named")
	}
	_, err = cp.modify(home^0xffff, ie.CauseSessionContextNotFound, ie.NewQueryURR(ie.NewURRID(1)))
	if err != nil {
		return fmt.Errorf("a session that is not there: %w", err)
	}
	_, err = cp.establish(3, ie.NewPDNType(ie.PDNTypeEthernet))
	if err == nil {
		return errors.New("a session without rules was accepted")
	}
	return cp.query(home)
}

func (cp controlPlane) delete(seid uint64, measured bool) error {
	for _, cause := range []uint8{ie.CauseRequestAccepted, ie.CauseSessionContextNotFound} {
		m, err := cp.ask(message.NewSessionDeletionRequest(0, 0, seid, cp.next(), 0))
		if err != nil {
			return err
		}
		answer := m.(*message.SessionDeletionResponse)
		if err := answered(answer.Cause, cause); err != nil {
			return err
		}
		if cause == ie.CauseRequestAccepted && measured {
			if err := usage(answer.UsageReport); err != nil {
				return err
			}
		}
	}
	return nil
}

func (cp controlPlane) release() error {
	m, err := cp.ask(message.NewAssociationReleaseRequest(cp.next(), cp.nodeID()))
	if err != nil {
		return err
	}
	if err := answered(m.(*message.AssociationReleaseResponse).Cause, ie.CauseRequestAccepted); err != nil {
		return err
	}
	// It asks whether that is true before it deletes anything.
	m, err = cp.expect(message.MsgTypeAssociationUpdateRequest, n1*t1)
	if err != nil {
		return err
	}
	return cp.send(message.NewAssociationUpdateResponse(m.Sequence(), cp.nodeID(),
		ie.NewCause(ie.CauseNoEstablishedPFCPAssociation)))
}

// usage checks a report of a session that carried nothing.
func usage(reports []*ie.IE) error {
	if len(reports) != 1 {
		return fmt.Errorf("%d usage reports", len(reports))
	}
	report := reports[0]
	if id, err := report.URRID(); err != nil || id != 1 {
		return fmt.Errorf("a report of URR %d: %v", id, err)
	}
	volume, err := report.VolumeMeasurement()
	if err != nil {
		return err
	}
	if !volume.HasTOVOL() || !volume.HasULVOL() || !volume.HasDLVOL() || volume.TotalVolume != 0 {
		return fmt.Errorf("volume %+v", volume)
	}
	if !volume.HasTONOP() || volume.TotalNumberOfPackets != 0 {
		return fmt.Errorf("packets %+v", volume)
	}
	if _, err := report.DurationMeasurement(); err != nil {
		return fmt.Errorf("duration: %w", err)
	}
	return nil
}
