package conn

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"allium/internal/auth"
	"allium/internal/failure"
	"allium/internal/wire"
	"allium/mongoerr"
)

// keepAlive is how long the operating system leaves an idle connection alone, and how often it then
// probes it before it gives it up: early enough that firewalls that drop idle connections without a
// word do not go unnoticed.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 120 * time.Second, Interval: 10 * time.Second, Count: 9}

// The steps of making a connection, as errors name them.
const (
	stepDial       = "dial"
	stepTLS        = "TLS handshake"
	stepRevocation = "certificate revocation"
	stepHello      = "hello"
	stepAuth       = "authenticate"
)

// Dial makes a connection to the server at addr, host:port or the path of a Unix domain socket:
// network connection, TLS, handshake, authentication.
//
// Errors name the step that failed. Network errors up to and including the handshake's hello are
// *mongoerr.ConnectionError with the labels SystemOverloadedError and RetryableError, unless an
// overloaded server cannot be their cause (specification: Connection Monitoring and Pooling,
// "backpressure-enabled"). A credential that is refused is a *mongoerr.AuthError. When ctx ends, or
// a step takes longer than Config.Operation, the error is a *mongoerr.TimeoutError.
func Dial(ctx context.Context, addr string, cfg *Config) (*Conn, error) {
	start := time.Now()
	c, attempt, err := dialOnce(ctx, addr, cfg)
	if err != nil {
		var again bool
		if again, err = attempt.Again(ctx, err); again {
			c, _, err = dialOnce(ctx, addr, cfg)
		}
	}
	if err != nil {
		return nil, label(cfg.outOfTime(start, addr, err))
	}
	return c, nil
}

// dialOnce makes a connection. Beside an error it returns the authentication if that had begun.
func dialOnce(ctx context.Context, addr string, cfg *Config) (*Conn, *auth.Attempt, error) {
	c, err := cfg.Ahead.take(ctx, addr, cfg)
	if c == nil && err == nil {
		c, err = DialMonitor(ctx, addr, cfg)
	}
	if err != nil {
		return nil, nil, err
	}
	introduced := false
	defer func() {
		if !introduced { // also if a callback panics
			c.Close()
		}
	}()
	if attempt, err := c.introduce(ctx); err != nil {
		return nil, attempt, err
	}
	introduced = true
	c.limit = 0
	c.maxMessage = min(max(wire.DefaultMaxMessageSize, c.hello.MaxMessageSize), maxServerMessage)
	return c, c.auth, nil
}

// DialMonitor makes a network connection with TLS, and stops there: a monitor's first Handshake is
// its first check. The errors are those of Dial, without labels.
func DialMonitor(ctx context.Context, addr string, cfg *Config) (*Conn, error) {
	start := time.Now()
	dialCtx, cancel := ctx, context.CancelFunc(func() {})
	if limit := cfg.steps(); limit > 0 {
		dialCtx, cancel = context.WithTimeout(ctx, limit)
	}
	defer cancel()
	nc, err := dialer(cfg).DialContext(dialCtx, network(addr), addr)
	if err != nil {
		return nil, connectError(ctx, start, addr, cfg, stepDial, err)
	}
	c := newConn(nc, addr, cfg)
	if cfg.TLS == nil {
		return c, nil
	}
	t := tls.Client(nc, tlsConfigFor(cfg.TLS.Config(), addr))
	c.nc = t
	shaken := false
	defer func() {
		if !shaken { // also if a callback of the configuration panics
			c.Abandon()
		}
	}()
	g := c.begin(ctx, c.limit)
	err = t.Handshake()
	c.end(&g)
	if err != nil {
		return nil, connectError(ctx, start, addr, cfg, stepTLS, err)
	}
	err = checkRevocation(ctx, t, cfg, nc)
	if ended(ctx) != nil { // a status that is not known is accepted, but not for want of time
		return nil, connectError(ctx, start, addr, cfg, stepRevocation, err)
	}
	if err != nil {
		return nil, &mongoerr.ConnectionError{Addr: addr, Op: stepTLS, Wrapped: err}
	}
	shaken = true
	return c, nil
}

// checkRevocation is a step with a time limit of its own. A certificate that responders say later
// is revoked ends the connection then; the next one is refused.
func checkRevocation(ctx context.Context, t *tls.Conn, cfg *Config, nc net.Conn) error {
	if cfg.Revocation == nil {
		return nil
	}
	if limit := cfg.steps(); limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	state := t.ConnectionState()
	return cfg.Revocation.Check(ctx, &state, func(error) { nc.Close() })
}

func dialer(cfg *Config) Dialer {
	if cfg.Dialer != nil {
		return cfg.Dialer
	}
	return &net.Dialer{KeepAliveConfig: keepAlive}
}

func network(addr string) string {
	if strings.HasSuffix(addr, ".sock") || strings.HasPrefix(addr, "/") {
		return "unix"
	}
	return "tcp"
}

// tlsConfigFor returns the client's TLS configuration with the name that the server's certificate
// must have.
func tlsConfigFor(shared *tls.Config, addr string) *tls.Config {
	if shared.ServerName != "" {
		return shared
	}
	own := shared.Clone()
	own.ServerName = "localhost" // for Unix domain sockets
	if network(addr) == "tcp" {
		own.ServerName = addr
		if host, _, err := net.SplitHostPort(addr); err == nil {
			own.ServerName = host
		}
	}
	return own
}

// connectError returns the error of a step of making a connection: a *mongoerr.TimeoutError if it
// is the end of ctx.
func connectError(ctx context.Context, start time.Time, addr string, cfg *Config, step string, err error) error {
	if cause := ended(ctx); cause != nil {
		return &mongoerr.TimeoutError{
			Phase: mongoerr.PhaseConnect + mongoerr.Phase(" ("+step+")"), Source: mongoerr.SourceCancel,
			Elapsed: time.Since(start), Addr: addr, Wrapped: cause,
		}
	}
	return &mongoerr.ConnectionError{Addr: addr, Op: step, Wrapped: advise(cfg, step, err)}
}

// outOfTime makes the error of a step that took longer than the operation has, which it is made
// for, a *mongoerr.TimeoutError: it says nothing about the server.
func (c *Config) outOfTime(start time.Time, addr string, err error) error {
	if c.steps() == c.ConnectTimeout {
		return err
	}
	e, ok := errors.AsType[*mongoerr.ConnectionError](err)
	if late := ok && e.Timeout() || errors.Is(err, context.DeadlineExceeded); !late {
		return err
	}
	if failure.OutOfTime(err) {
		return err
	}
	return &mongoerr.TimeoutError{Phase: mongoerr.PhaseConnect, Source: mongoerr.SourceConnecting,
		Elapsed: time.Since(start), Addr: addr, Wrapped: err}
}

// advise adds to an error of making a connection what may have to be done about it, where the error
// itself does not tell.
func advise(cfg *Config, step string, err error) error {
	closed := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
	_, noTLS := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case step == stepTLS && (closed || noTLS):
		return &advised{err, "if the server does not use TLS, set tls=false"}
	case step == stepHello && closed:
		return &advised{err, "if the server requires TLS, set tls=true"}
	case step == stepHello && IsProtocolError(err):
		return &advised{err, "is it a MongoDB server?"}
	}
	return cfg.TLS.Advise(err)
}

// advised is an error with advice.
type advised struct {
	err    error
	advice string
}

func (e *advised) Error() string { return e.err.Error() + " (" + e.advice + ")" }
func (e *advised) Unwrap() error { return e.err }

// ended returns the context's error if it is over. A deadline that has passed counts even if the
// context's own timer is late: sockets have timers of their own.
func ended(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) && ctx.Err() == nil {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// label adds the labels of overload to an error that an overloaded server may have caused.
func label(err error) error {
	if e, ok := errors.AsType[*mongoerr.ConnectionError](err); ok && e.Op != stepAuth && mayBeOverload(e) {
		failure.AddTo(&e.Labels, mongoerr.LabelSystemOverloaded)
		failure.AddTo(&e.Labels, mongoerr.LabelRetryable)
	}
	return err
}

// mayBeOverload reports whether a failed connection is a matter of the network: not a name that is
// not known, not a certificate that is refused, not bytes that make no sense.
func mayBeOverload(e *mongoerr.ConnectionError) bool {
	if _, ok := errors.AsType[*net.DNSError](e.Wrapped); ok {
		return false
	}
	if _, ok := errors.AsType[*protocolError](e.Wrapped); ok {
		return false
	}
	if _, ok := errors.AsType[*unsupported](e.Wrapped); ok {
		return false
	}
	if _, ok := errors.AsType[*proxyError](e.Wrapped); ok {
		return false
	}
	if isAlert(e.Wrapped) {
		return false
	}
	if e.Op != stepTLS {
		return true
	}
	_, isSyscall := errors.AsType[syscall.Errno](e.Wrapped)
	return isSyscall || slices.ContainsFunc([]error{io.EOF, io.ErrUnexpectedEOF, os.ErrDeadlineExceeded,
		io.ErrClosedPipe},
		func(ioErr error) bool { return errors.Is(e.Wrapped, ioErr) })
}

// isAlert reports whether err is one of TLS's own, which package tls marks by the operation. A
// server with TLS 1.3 refuses a client's certificate after the client's handshake, so that the
// alert comes in place of the first reply.
func isAlert(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && (op.Op == "remote error" || op.Op == "local error")
}
