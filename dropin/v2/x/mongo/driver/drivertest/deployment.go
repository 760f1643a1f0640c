// Package drivertest has a deployment for tests: a server that answers with replies which the test
// has given it.
package drivertest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/address"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
)

const (
	serverAddress   = address.Address("127.0.0.1:27017")
	maxDocumentSize = 16777216
	maxMessageSize  = 48000000
	maxBatchCount   = 100000
	maxWireVersion  = 25
)

var sessionTimeoutMinutes int64 = 30

// MockDescription describes the server.
var MockDescription = description.Server{
	CanonicalAddr: serverAddress, MaxDocumentSize: maxDocumentSize, MaxMessageSize: maxMessageSize,
	MaxBatchCount:         maxBatchCount,
	SessionTimeoutMinutes: &sessionTimeoutMinutes, Kind: description.ServerKindRSPrimary,
	WireVersion: &description.VersionRange{Max: maxWireVersion},
}

// ErrNoResponsesRemaining is the error of a connection whose server has no reply left.
var ErrNoResponsesRemaining = errors.New("no responses remaining")

// A MockDeployment is a server that answers each command with the next of its replies, whatever the
// command is. What clients ask of servers by themselves, hello and the end of sessions, takes none.
// It is safe for concurrent use.
type MockDeployment struct{ queue *queue }

// A queue has the replies that are left.
type queue struct {
	mu        sync.Mutex
	responses []bson.D
}

// NewMockDeployment returns a deployment with these replies.
func NewMockDeployment(responses ...bson.D) *MockDeployment {
	return &MockDeployment{&queue{responses: responses}}
}

// AddResponses adds replies.
func (md *MockDeployment) AddResponses(responses ...bson.D) {
	md.queue.mu.Lock()
	defer md.queue.mu.Unlock()
	md.queue.responses = append(md.queue.responses, responses...)
}

// ClearResponses removes the replies that are left.
func (md *MockDeployment) ClearResponses() {
	md.queue.mu.Lock()
	defer md.queue.mu.Unlock()
	md.queue.responses = nil
}

// DialContext makes a connection.
func (md *MockDeployment) DialContext(context.Context, string, string) (net.Conn, error) {
	c := &mockConn{queue: md.queue}
	c.cond.L = &c.mu
	return c, nil
}

var hello = bson.D{
	{Key: "ok", Value: 1}, {Key: "isWritablePrimary", Value: true}, {Key: "ismaster", Value: true},
	{Key: "helloOk", Value: true},
	{Key: "msg", Value: "isdbgrid"}, {Key: "serviceId", Value: bson.ObjectID{1}},
	{Key: "maxBsonObjectSize", Value: maxDocumentSize}, {Key: "maxMessageSizeBytes", Value: maxMessageSize},
	{Key: "maxWriteBatchSize", Value: maxBatchCount},
	{Key: "logicalSessionTimeoutMinutes", Value: sessionTimeoutMinutes}, {Key: "minWireVersion", Value: 0},
	{Key: "maxWireVersion", Value: maxWireVersion},
}

// reply returns the reply to a command.
func (q *queue) reply(command bsoncore.Document) (bson.D, error) {
	name := ""
	if elems, err := command.Elements(); err == nil && len(elems) > 0 {
		name = elems[0].Key()
	}
	switch name {
	case "hello", "isMaster", "ismaster":
		return hello, nil
	case "endSessions":
		return bson.D{{Key: "ok", Value: 1}}, nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.responses) == 0 {
		if name == "killCursors" {
			return bson.D{{Key: "ok", Value: 1}}, nil
		}
		return nil, ErrNoResponsesRemaining
	}
	next := q.responses[0]
	q.responses = q.responses[1:]
	return next, nil
}

// A mockConn is a connection to a MockDeployment.
type mockConn struct {
	queue *queue

	mu       sync.Mutex
	cond     sync.Cond
	in       []byte // what was written and is no whole message
	out      bytes.Buffer
	err      error // of Read, once out is empty
	deadline time.Time
	timer    *time.Timer
}

// Write takes a part of a message.
func (c *mockConn) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == net.ErrClosed {
		return 0, net.ErrClosed
	}
	c.in = append(c.in, b...)
	for len(c.in) >= 16 {
		n := int(binary.LittleEndian.Uint32(c.in))
		if n < 16 || len(c.in) < n {
			break
		}
		c.answer(c.in[:n])
		c.in = c.in[n:]
	}
	return len(b), nil
}

func (c *mockConn) answer(message []byte) {
	defer c.cond.Broadcast()
	id, op := binary.LittleEndian.Uint32(message[4:]), binary.LittleEndian.Uint32(message[12:])
	command, err := GetCommandFromMsgWireMessage(message)
	if op == opQuery {
		command, err = GetCommandFromQueryWireMessage(message)
	}
	if err != nil {
		c.err = err
		return
	}
	reply, err := c.queue.reply(command)
	if err != nil {
		c.err = err
		return
	}
	doc, err := bson.Marshal(reply)
	if err != nil {
		c.err = err
		return
	}
	if op == opQuery {
		c.out.Write(frame(id, opReply, append(replyHead(), doc...)))
	} else if op == opMsg && message[16]&2 == 0 { // else no reply is wanted
		c.out.Write(frame(id, opMsg, append([]byte{0, 0, 0, 0, 0}, doc...)))
	}
}

// Read returns a part of a reply.
func (c *mockConn) Read(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.out.Len() == 0 {
		switch {
		case c.err == net.ErrClosed:
			return 0, io.EOF
		case c.err != nil:
			return 0, c.err
		case !c.deadline.IsZero() && !time.Now().Before(c.deadline):
			return 0, os.ErrDeadlineExceeded
		}
		c.cond.Wait()
	}
	return c.out.Read(b)
}

// Close ends the connection.
func (c *mockConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = net.ErrClosed
	if c.timer != nil {
		c.timer.Stop()
	}
	c.cond.Broadcast()
	return nil
}

// LocalAddr implements net.Conn.
func (c *mockConn) LocalAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// RemoteAddr implements net.Conn.
func (c *mockConn) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 27017}
}

// SetDeadline implements net.Conn.
func (c *mockConn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetReadDeadline implements net.Conn.
func (c *mockConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadline = t
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
	if !t.IsZero() {
		c.timer = time.AfterFunc(time.Until(t), c.cond.Broadcast)
	}
	c.cond.Broadcast()
	return nil
}

// SetWriteDeadline implements net.Conn. Writes do not wait.
func (c *mockConn) SetWriteDeadline(time.Time) error { return nil }
