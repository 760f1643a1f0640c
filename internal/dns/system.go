package dns

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// System is the resolver of the system, as the standard library uses it. It also knows the time to
// live of records, which the standard library does not return: it reads it out of the messages that
// pass.
type System struct {
	// Dial connects to a name server instead of the system's dialer, if it is not nil. See
	// net.Resolver.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// LookupSRV returns SRV records, as net.Resolver does.
func (s System) LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error) {
	return s.resolver(nil).LookupSRV(ctx, service, proto, name)
}

// LookupTXT returns TXT records, as net.Resolver does.
func (s System) LookupTXT(ctx context.Context, name string) ([]string, error) {
	return s.resolver(nil).LookupTXT(ctx, name)
}

// LookupSRVTTL returns SRV records and the shortest time to live among them.
func (s System) LookupSRVTTL(ctx context.Context, service, proto, name string) ([]*net.SRV, time.Duration, error) {
	var seen ttls
	_, records, err := s.resolver(&seen).LookupSRV(ctx, service, proto, name)
	return records, seen.shortest(), err
}

func (s System) resolver(seen *ttls) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		dial := s.Dial
		if dial == nil {
			dial = new(net.Dialer).DialContext
		}
		nc, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		// The standard library looks at the context between attempts, each of which waits for
		// seconds. Here it ends the one in hand.
		context.AfterFunc(ctx, func() { nc.Close() })
		if seen == nil {
			return nc, nil
		}
		if p, ok := nc.(net.PacketConn); ok { // the standard library tells datagrams and streams apart by this
			return &packetSpy{spy{Conn: nc, seen: seen}, p}, nil
		}
		return &streamSpy{spy: spy{Conn: nc, seen: seen}}, nil
	}}
}

// ttls collects the times to live of SRV records.
type ttls struct {
	mu    sync.Mutex
	found bool
	least uint32
}

func (t *ttls) shortest() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Duration(t.least) * time.Second
}

// add reads the SRV records of a message. What is malformed is left to the standard library.
func (t *ttls) add(msg []byte) {
	var p dnsmessage.Parser
	if _, err := p.Start(msg); err != nil || p.SkipAllQuestions() != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		h, err := p.AnswerHeader()
		if err != nil {
			return
		}
		if h.Type == dnsmessage.TypeSRV && (!t.found || h.TTL < t.least) {
			t.found, t.least = true, h.TTL
		}
		if p.SkipAnswer() != nil {
			return
		}
	}
}

// spy passes a connection on.
type spy struct {
	net.Conn
	seen *ttls
}

// packetSpy reads along on a connection on which each read is a message.
type packetSpy struct {
	spy
	net.PacketConn
}

func (s *packetSpy) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	s.seen.add(b[:n])
	return n, err
}

func (s *packetSpy) Close() error                       { return s.Conn.Close() }
func (s *packetSpy) LocalAddr() net.Addr                { return s.Conn.LocalAddr() }
func (s *packetSpy) SetDeadline(t time.Time) error      { return s.Conn.SetDeadline(t) }
func (s *packetSpy) SetReadDeadline(t time.Time) error  { return s.Conn.SetReadDeadline(t) }
func (s *packetSpy) SetWriteDeadline(t time.Time) error { return s.Conn.SetWriteDeadline(t) }

// streamSpy reads along on a connection on which a message follows its length in two bytes.
type streamSpy struct {
	spy
	read []byte
}

// maxMessage is the length of a message in two bytes, and those.
const maxMessage = 2 + 1<<16

func (s *streamSpy) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	if len(s.read)+n <= maxMessage {
		s.read = append(s.read, b[:n]...)
	}
	if len(s.read) >= 2 {
		if end := 2 + int(binary.BigEndian.Uint16(s.read)); len(s.read) >= end {
			s.seen.add(s.read[2:end])
			s.read = s.read[end:]
		}
	}
	return n, err
}
