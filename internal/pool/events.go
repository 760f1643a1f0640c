package pool

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"allium/bson"
	"allium/event"
	"allium/internal/failure"
	"allium/internal/logging"
)

// Every function here tells the listener and the log of one event, and costs next to nothing
// without them. The log is told by defer: behind the listener, and even if that panics or ends the
// goroutine. The events that change which connections there are come under the pool's lock, and may
// come under the topology's, with them the check-in of a connection that is closed under its
// operation: they are queued, so that everybody sees them in their order, and the program's code
// runs under no lock. The others are told on the goroutine of the operation, behind what is queued.

// tell queues what tells listeners.
func (p *Pool) tell(f func()) {
	if p.cfg.Monitor != nil || p.cfg.Log != nil {
		p.events.Add(f)
	}
}

// listening reports whether anybody wants to know about checkouts.
func (p *Pool) listening() bool { return p.cfg.Monitor != nil || p.logs() }

func (p *Pool) logs() bool {
	return p.cfg.Log != nil && p.cfg.Log.Enabled(context.Background(), logging.Connection, slog.LevelDebug)
}

func (p *Pool) log(message string, attrs ...slog.Attr) {
	p.cfg.Log.Log(context.Background(), logging.Connection, slog.LevelDebug, message, logging.Server(attrs, p.addr)...)
}

func (p *Pool) created() {
	p.tell(func() { p.toldCreated() })
}

func (p *Pool) toldCreated() {
	c := p.cfg
	defer func() {
		if !p.logs() {
			return
		}
		var attrs []slog.Attr
		if c.MaxIdleTime > 0 {
			attrs = append(attrs, slog.Int64("maxIdleTimeMS", c.MaxIdleTime.Milliseconds()))
		}
		if c.MinPoolSize > 0 {
			attrs = append(attrs, slog.Int("minPoolSize", c.MinPoolSize))
		}
		attrs = append(attrs, slog.Int("maxPoolSize", c.MaxPoolSize))
		if c.MaxConnecting > 0 {
			attrs = append(attrs, slog.Int("maxConnecting", c.MaxConnecting))
		}
		if c.WaitQueueTimeout > 0 {
			attrs = append(attrs, slog.Int64("waitQueueTimeoutMS", c.WaitQueueTimeout.Milliseconds()))
		}
		p.log("Connection pool created", attrs...)
	}()
	if m := c.Monitor; m != nil && m.PoolCreated != nil {
		m.PoolCreated(&event.PoolCreated{Addr: p.addr, Options: event.PoolOptions{
			MaxPoolSize: c.MaxPoolSize, MinPoolSize: c.MinPoolSize, MaxConnecting: p.maxConnecting(),
			MaxIdleTime: c.MaxIdleTime, WaitQueueTimeout: c.WaitQueueTimeout,
		}})
	}
}

func (p *Pool) readied() {
	p.tell(func() { p.toldReadied() })
}

func (p *Pool) toldReadied() {
	defer func() {
		if p.logs() {
			p.log("Connection pool ready")
		}
	}()
	if m := p.cfg.Monitor; m != nil && m.PoolReady != nil {
		m.PoolReady(&event.PoolReady{Addr: p.addr})
	}
}

func (p *Pool) cleared(service *bson.ObjectID, interrupt bool, cause error) {
	if p.cfg.Cleared != nil {
		p.cfg.Cleared(cause)
	}
	p.tell(func() { p.toldCleared(service, interrupt, cause) })
}

func (p *Pool) toldCleared(service *bson.ObjectID, interrupt bool, cause error) {
	defer func() {
		if !p.logs() {
			return
		}
		var attrs []slog.Attr
		if service != nil {
			attrs = append(attrs, slog.String("serviceId", service.Hex()))
		}
		p.log("Connection pool cleared", attrs...)
	}()
	if m := p.cfg.Monitor; m != nil && m.PoolCleared != nil {
		m.PoolCleared(&event.PoolCleared{Addr: p.addr, ServiceID: service, InterruptInUseConnections: interrupt,
			Err: cause})
	}
}

func (p *Pool) ended() {
	p.tell(func() { p.toldEnded() })
}

func (p *Pool) toldEnded() {
	defer func() {
		if p.logs() {
			p.log("Connection pool closed")
		}
	}()
	if m := p.cfg.Monitor; m != nil && m.PoolClosed != nil {
		m.PoolClosed(&event.PoolClosed{Addr: p.addr})
	}
}

func (p *Pool) connCreated(c *Conn) {
	p.tell(func() { p.toldConnCreated(c) })
}

func (p *Pool) toldConnCreated(c *Conn) {
	defer func() {
		if p.logs() {
			p.log("Connection created", slog.Int64("driverConnectionId", c.ID))
		}
	}()
	if m := p.cfg.Monitor; m != nil && m.ConnectionCreated != nil {
		m.ConnectionCreated(&event.ConnectionCreated{Addr: p.addr, ConnectionID: c.ID})
	}
}

func (p *Pool) connReady(c *Conn) {
	d := time.Since(c.created)
	p.tell(func() { p.toldConnReady(c, d) })
}

func (p *Pool) toldConnReady(c *Conn, d time.Duration) {
	defer func() {
		if p.logs() {
			p.log("Connection ready", slog.Int64("driverConnectionId", c.ID), logging.Millis("durationMS", d))
		}
	}()
	if m := p.cfg.Monitor; m != nil && m.ConnectionReady != nil {
		m.ConnectionReady(&event.ConnectionReady{Addr: p.addr, ConnectionID: c.ID, Duration: d})
	}
}

var closedTexts = map[string]string{
	event.ClosedStale:      "Connection became stale because the pool was cleared",
	event.ClosedIdle:       "Connection has been available but unused for longer than the configured max idle time",
	event.ClosedError:      "An error occurred while using the connection",
	event.ClosedPoolClosed: "Connection pool was closed",
}

func (p *Pool) connClosed(c *Conn, reason string, err error) {
	p.tell(func() { p.toldConnClosed(c, reason, err) })
}

func (p *Pool) toldConnClosed(c *Conn, reason string, err error) {
	defer func() {
		if !p.logs() {
			return
		}
		attrs := []slog.Attr{slog.Int64("driverConnectionId", c.ID), slog.String("reason", closedTexts[reason])}
		if reason == event.ClosedError && err != nil {
			attrs = append(attrs, slog.String("error", err.Error()))
		}
		p.log("Connection closed", attrs...)
	}()
	if m := p.cfg.Monitor; m != nil && m.ConnectionClosed != nil {
		m.ConnectionClosed(&event.ConnectionClosed{Addr: p.addr, ConnectionID: c.ID, Reason: reason, Err: err})
	}
}

func (p *Pool) checkOutStarted(ctx context.Context) {
	p.events.Settle(ctx)
	defer func() {
		if p.logs() {
			p.log("Connection checkout started")
		}
	}()
	if m := p.cfg.Monitor; m != nil && m.ConnectionCheckOutStarted != nil {
		m.ConnectionCheckOutStarted(&event.ConnectionCheckOutStarted{Addr: p.addr})
	}
}

var failedTexts = map[string]string{
	event.CheckOutTimeout:         "Wait queue timeout elapsed without a connection becoming available",
	event.CheckOutConnectionError: "An error occurred while trying to establish a new connection",
	event.CheckOutPoolClosed:      "Connection pool was closed",
}

func (p *Pool) checkOutFailed(ctx context.Context, err error, start time.Time) {
	if start.IsZero() {
		return
	}
	d := time.Since(start)
	p.events.Settle(ctx)
	reason := event.CheckOutConnectionError
	if failure.OutOfTime(err) {
		reason = event.CheckOutTimeout
	} else if errors.Is(err, errClosed) {
		reason = event.CheckOutPoolClosed
	}
	defer func() {
		if !p.logs() {
			return
		}
		attrs := []slog.Attr{slog.String("reason", failedTexts[reason]), logging.Millis("durationMS", d)}
		if reason == event.CheckOutConnectionError {
			attrs = append(attrs, slog.String("error", err.Error()))
		}
		p.log("Connection checkout failed", attrs...)
	}()
	if m := p.cfg.Monitor; m != nil && m.ConnectionCheckOutFailed != nil {
		m.ConnectionCheckOutFailed(&event.ConnectionCheckOutFailed{Addr: p.addr, Reason: reason, Err: err, Duration: d})
	}
}

func (p *Pool) checkedOut(ctx context.Context, c *Conn, start time.Time) {
	if start.IsZero() {
		return
	}
	d := time.Since(start)
	p.events.Settle(ctx)
	defer func() {
		if p.logs() {
			p.log("Connection checked out", slog.Int64("driverConnectionId", c.ID), logging.Millis("durationMS", d))
		}
	}()
	if m := p.cfg.Monitor; m != nil && m.ConnectionCheckedOut != nil {
		m.ConnectionCheckedOut(&event.ConnectionCheckedOut{Addr: p.addr, ConnectionID: c.ID, Duration: d})
	}
}

func (p *Pool) checkedIn(c *Conn) {
	defer func() {
		if p.logs() {
			p.log("Connection checked in", slog.Int64("driverConnectionId", c.ID))
		}
	}()
	if m := p.cfg.Monitor; m != nil && m.ConnectionCheckedIn != nil {
		m.ConnectionCheckedIn(&event.ConnectionCheckedIn{Addr: p.addr, ConnectionID: c.ID})
	}
}
