package main

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/wmnsk/go-pfcp/ie"
	"github.com/wmnsk/go-pfcp/message"
)

const (
	t1 = time.Second // a request is sent again after this time ...
	n1 = 4           // ... and so often
)

// peer is one PFCP entity with a single other one.
type peer struct {
	conn          *net.UDPConn
	local, remote net.IP
	to            *net.UDPAddr
	started       time.Time
	sequence      uint32
}

func listen(local, remote net.IP) (*peer, error) {
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: local, Port: 8805})
	if err != nil {
		return nil, err
	}
	to := &net.UDPAddr{IP: remote, Port: 8805}
	return &peer{conn: conn, local: local, remote: remote, to: to, started: time.Now(), sequence: 100}, nil
}

func (p *peer) nodeID() *ie.IE { return ie.NewNodeID(p.local.String(), "", "") }

func (p *peer) next() uint32 {
	p.sequence++
	return p.sequence
}

func (p *peer) send(m message.Message) error {
	bytes := make([]byte, m.MarshalLen())
	if err := m.MarshalTo(bytes); err != nil {
		return fmt.Errorf("cannot write a %s: %w", m.MessageTypeName(), err)
	}
	_, err := p.conn.WriteTo(bytes, p.to)
	return err
}

// receive gives the next message but heartbeats, which it answers; the error is a timeout if none comes by then.
func (p *peer) receive(until time.Time) (message.Message, error) {
	for {
		if err := p.conn.SetReadDeadline(until); err != nil {
			return nil, err
		}
		buffer := make([]byte, 65536)
		length, from, err := p.conn.ReadFromUDP(buffer)
		if err != nil {
			return nil, err
		}
		if !from.IP.Equal(p.remote) {
			continue
		}
		m, err := message.Parse(buffer[:length])
		if err != nil {
			return nil, fmt.Errorf("go-pfcp cannot read % x: %w", buffer[:length], err)
		}
		if m.MessageType() != message.MsgTypeHeartbeatRequest {
			return m, nil
		}
		if err := p.send(message.NewHeartbeatResponse(m.Sequence(), ie.NewRecoveryTimeStamp(p.started))); err != nil {
			return nil, err
		}
	}
}

// ask sends a request until it is answered.
func (p *peer) ask(request message.Message) (message.Message, error) {
	for try := 0; try <= n1; try++ {
		if err := p.send(request); err != nil {
			return nil, err
		}
		until := time.Now().Add(t1)
		for {
			answer, err := p.receive(until)
			if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
				break
			}
			if err != nil {
				return nil, err
			}
			if answer.Sequence() != request.Sequence() || answer.MessageType() != request.MessageType()+1 {
				continue
			}
			return answer, nil
		}
	}
	return nil, fmt.Errorf("no answer to a %s", request.MessageTypeName())
}

// expect waits for a message of this type.
func (p *peer) expect(kind uint8, within time.Duration) (message.Message, error) {
	until := time.Now().Add(within)
	for {
		m, err := p.receive(until)
		if err != nil {
			return nil, fmt.Errorf("waiting for a message of type %d: %w", kind, err)
		}
		if m.MessageType() == kind {
			return m, nil
		}
	}
}

// answered checks the cause that a response states.
func answered(cause *ie.IE, want uint8) error {
	if cause == nil {
		return errors.New("a response without a cause")
	}
	got, err := cause.Cause()
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("cause %d, not %d", got, want)
	}
	return nil
}

// in adds what was being done to an error.
func in(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	fmt.Println(what)
	return nil
}
