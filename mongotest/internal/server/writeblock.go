package server

import (
	"allium/mongotest/internal/account"
	"allium/mongotest/internal/namespace"
	"allium/mongotest/internal/srverr"
)

// WriteBlock returns why users may not write (setUserWriteBlockMode), empty if they may.
func (d *Data) WriteBlock() (reason string) {
	if d.whole != nil {
		d = d.whole
	}
	if p := d.writeBlock.Load(); p != nil {
		reason = *p
	}
	return reason
}

// SetWriteBlock keeps users from writing for a reason, or lets them write again if it is empty.
func (d *Data) SetWriteBlock(reason string) { d.writeBlock.Store(&reason) }

// guard returns what keeps the request from writing to namespaces, nil if nothing does. What the
// deployment keeps of itself is never blocked, and users may have a privilege to write regardless.
func (r *Request) guard() func(ns string) error {
	if r.Node.data.WriteBlock() == "" || r.Conn.trusted ||
		r.Node.cfg.Auth && r.May(account.Need{Action: "bypassWriteBlockingMode"}) {
		return nil
	}
	return func(ns string) error {
		switch db, _ := namespace.Split(ns); db {
		case "admin", "config", "local":
			return nil
		}
		return srverr.New(srverr.UserWritesBlocked, "User writes blocked")
	}
}
