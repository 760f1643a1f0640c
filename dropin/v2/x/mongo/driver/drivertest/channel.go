package drivertest

import (
	"bytes"
	"context"
	"errors"
	"net"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo/address"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
)

// A ChannelConn is a connection whose messages go through channels.
type ChannelConn struct {
	WriteErr error
	Written  chan []byte
	ReadResp chan []byte
	ReadErr  chan error
	Desc     description.Server
}

// OIDCTokenGenID returns 0.
func (c *ChannelConn) OIDCTokenGenID() uint64 { return 0 }

// SetOIDCTokenGenID does nothing.
func (c *ChannelConn) SetOIDCTokenGenID(uint64) {}

// Write puts a copy of the message into Written, which must have room, and returns WriteErr.
func (c *ChannelConn) Write(ctx context.Context, wm []byte) error {
	select {
	case c.Written <- bytes.Clone(wm):
	case <-ctx.Done():
		return ctx.Err()
	default:
		return errors.New("could not write wiremessage to written channel")
	}
	return c.WriteErr
}

// Read returns what comes out of ReadResp or ReadErr.
func (c *ChannelConn) Read(ctx context.Context) ([]byte, error) {
	select {
	case wm := <-c.ReadResp:
		return wm, nil
	case err := <-c.ReadErr:
		return nil, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Description returns Desc.
func (c *ChannelConn) Description() description.Server { return c.Desc }

// Close does nothing.
func (c *ChannelConn) Close() error { return nil }

// ID returns a name.
func (c *ChannelConn) ID() string { return "faked" }

// DriverConnectionID returns 0.
func (c *ChannelConn) DriverConnectionID() int64 { return 0 }

// ServerConnectionID returns a number.
func (c *ChannelConn) ServerConnectionID() *int64 {
	var id int64 = 42
	return &id
}

// Address returns a name.
func (c *ChannelConn) Address() address.Address { return address.Address("0.0.0.0") }

// Stale returns false.
func (c *ChannelConn) Stale() bool { return false }

// A ChannelNetConn is a net.Conn whose messages go through channels.
type ChannelNetConn struct {
	WriteErr error
	Written  chan []byte
	ReadResp chan []byte
	ReadErr  chan error
}

// Read returns what comes out of ReadResp or ReadErr.
func (c *ChannelNetConn) Read(b []byte) (int, error) {
	select {
	case wm := <-c.ReadResp:
		return copy(b, wm), nil
	case err := <-c.ReadErr:
		return 0, err
	}
}

// Write puts a copy of b into Written, which must have room, and returns WriteErr.
func (c *ChannelNetConn) Write(b []byte) (int, error) {
	select {
	case c.Written <- bytes.Clone(b):
	default:
		return 0, errors.New("could not write wiremessage to written channel")
	}
	return len(b), c.WriteErr
}

// Close does nothing.
func (c *ChannelNetConn) Close() error { return nil }

// LocalAddr returns nil.
func (c *ChannelNetConn) LocalAddr() net.Addr { return nil }

// RemoteAddr returns nil.
func (c *ChannelNetConn) RemoteAddr() net.Addr { return nil }

// SetDeadline does nothing.
func (c *ChannelNetConn) SetDeadline(time.Time) error { return nil }

// SetReadDeadline does nothing.
func (c *ChannelNetConn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing.
func (c *ChannelNetConn) SetWriteDeadline(time.Time) error { return nil }

// GetWrittenMessage returns what was written, nil if nothing was.
func (c *ChannelNetConn) GetWrittenMessage() []byte {
	select {
	case wm := <-c.Written:
		return wm
	default:
		return nil
	}
}

// AddResponse puts a reply into ReadResp, which must have room: its length and its rest are read
// one after the other.
func (c *ChannelNetConn) AddResponse(resp []byte) error {
	select {
	case c.ReadResp <- resp[:4]:
	default:
		return errors.New("could not write length bytes")
	}
	select {
	case c.ReadResp <- resp[4:]:
	default:
		return errors.New("could not write response bytes")
	}
	return nil
}
