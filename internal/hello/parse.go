// Package hello reads what a server says about itself: the reply to hello or its legacy forms,
// which both a monitor's check and the handshake of a connection turn into a server description.
package hello

import (
	"fmt"
	"math"
	"strings"
	"time"

	"allium/bson"
	"allium/event"
	"allium/internal/failure"
	"allium/internal/wire"
	"allium/mongoerr"
)

// DefaultPort is the port of an address that names none.
const DefaultPort = "27017"

// Addr normalizes the address of a server: host names in lower case, with the default port if there
// is none. The path of a Unix domain socket stays as it is.
func Addr(addr string) string {
	if strings.HasSuffix(addr, ".sock") || strings.HasPrefix(addr, "/") {
		return addr
	}
	addr = strings.ToLower(addr)
	if i := strings.LastIndexByte(addr, ':'); i < 0 || strings.HasSuffix(addr, "]") {
		addr += ":" + DefaultPort
	}
	return addr
}

// MaxMembers is how many members a server may name in its hello. A replica set has 50 at most; the
// bound leaves room for a later server that allows more. Each member that is believed in costs a
// monitor and connections to wherever its name leads.
const MaxMembers = 100

var errTooManyMembers = fmt.Errorf("hello names more than %d members, which no replica set has", MaxMembers)

// Parse turns the reply of the server at addr into a description (specification: Server Discovery
// and Monitoring, parsing a hello or legacy hello response). A reply that is an error gives the
// description of an unknown server with the *mongoerr.ServerError in LastError, one that cannot be
// read to its end a *mongoerr.ConnectionError, one that names more than MaxMembers an error of its
// own. Round trip times and the time of the update are the caller's.
//
// Nothing in the description shares the memory of the reply, except the error, which holds a copy
// of it.
func Parse(addr string, reply bson.Raw) *event.ServerDescription {
	if err := wire.CheckDocument(reply, levels); err != nil {
		return &event.ServerDescription{Addr: addr, LastError: &mongoerr.ConnectionError{
			Addr: addr, Op: "hello", Sent: true, Wrapped: fmt.Errorf("malformed reply: %w", err)}}
	}
	d := &event.ServerDescription{Addr: addr}
	var f flags
	for key, v := range reply.All() {
		if set := fields[key]; set != nil {
			set(d, &f, v)
		}
	}
	if !f.ok {
		return &event.ServerDescription{
			Addr:            addr,
			LastError:       failure.NewServerError("hello", addr, reply),
			TopologyVersion: d.TopologyVersion,
		}
	}
	if n := len(d.Hosts) + len(d.Passives) + len(d.Arbiters); n > MaxMembers {
		return &event.ServerDescription{Addr: addr, LastError: errTooManyMembers, TopologyVersion: d.TopologyVersion}
	}
	d.Kind = f.kind(d)
	atLeastOne(&d.MaxBSONObjectSize, 16<<20)
	atLeastOne(&d.MaxMessageSize, 48_000_000)
	atLeastOne(&d.MaxWriteBatchSize, 100_000)
	return d
}

// levels is how deep the documents lie that Parse reads: lastWrite.opTime is in the third.
const levels = 3

// atLeastOne replaces a limit that the server did not name, or that lets nothing through, by what
// servers usually have.
func atLeastOne(limit *int32, usual int32) {
	if *limit <= 0 {
		*limit = usual
	}
}

// TopologyVersion reads the topologyVersion out of the reply to any command, nil if there is none.
func TopologyVersion(reply bson.Raw) *event.TopologyVersion {
	doc, ok := reply.Lookup("topologyVersion").Document()
	if !ok {
		return nil
	}
	return ParseTopologyVersion(doc)
}

// ParseTopologyVersion reads a topologyVersion document, nil if it is none.
func ParseTopologyVersion(doc bson.Raw) *event.TopologyVersion {
	pid, ok1 := doc.Lookup("processId").ObjectID()
	counter, ok2 := doc.Lookup("counter").AsInt64()
	if !ok1 || !ok2 {
		return nil
	}
	return &event.TopologyVersion{ProcessID: pid, Counter: counter}
}

// flags are the fields of a reply that only decide the kind of the server.
type flags struct {
	ok, writable, hasWritable, isMaster bool
	secondary, arbiter, hidden          bool
	replicaSet, dbgrid                  bool
}

func (f *flags) kind(d *event.ServerDescription) event.ServerKind {
	writable := f.isMaster
	if f.hasWritable {
		writable = f.writable
	}
	switch {
	case f.dbgrid:
		return event.Mongos
	case f.replicaSet:
		return event.RSGhost
	case d.SetName == "":
		return event.Standalone
	case f.hidden:
		return event.RSOther
	case writable:
		return event.RSPrimary
	case f.secondary:
		return event.RSSecondary
	case f.arbiter:
		return event.RSArbiter
	}
	return event.RSOther
}

var fields = map[string]func(d *event.ServerDescription, f *flags, v bson.RawValue){
	"ok": func(_ *event.ServerDescription, f *flags, v bson.RawValue) { n, _ := v.AsInt64(); f.ok = n == 1 },
	"isWritablePrimary": func(_ *event.ServerDescription, f *flags, v bson.RawValue) {
		f.writable, f.hasWritable = v.AsBool(), true
	},
	"ismaster":     func(_ *event.ServerDescription, f *flags, v bson.RawValue) { f.isMaster = v.AsBool() },
	"secondary":    func(_ *event.ServerDescription, f *flags, v bson.RawValue) { f.secondary = v.AsBool() },
	"arbiterOnly":  func(_ *event.ServerDescription, f *flags, v bson.RawValue) { f.arbiter = v.AsBool() },
	"hidden":       func(_ *event.ServerDescription, f *flags, v bson.RawValue) { f.hidden = v.AsBool() },
	"isreplicaset": func(_ *event.ServerDescription, f *flags, v bson.RawValue) { f.replicaSet = v.AsBool() },
	"msg": func(_ *event.ServerDescription, f *flags, v bson.RawValue) {
		s, _ := v.StringValue()
		f.dbgrid = s == "isdbgrid"
	},

	"me":       func(d *event.ServerDescription, _ *flags, v bson.RawValue) { d.Me = addrValue(v) },
	"primary":  func(d *event.ServerDescription, _ *flags, v bson.RawValue) { d.Primary = addrValue(v) },
	"hosts":    func(d *event.ServerDescription, _ *flags, v bson.RawValue) { d.Hosts = addrs(v) },
	"passives": func(d *event.ServerDescription, _ *flags, v bson.RawValue) { d.Passives = addrs(v) },
	"arbiters": func(d *event.ServerDescription, _ *flags, v bson.RawValue) { d.Arbiters = addrs(v) },
	"setName": func(d *event.ServerDescription, _ *flags, v bson.RawValue) {
		d.SetName, _ = v.StringValue()
	},
	"minWireVersion": func(d *event.ServerDescription, _ *flags, v bson.RawValue) {
		d.MinWireVersion = int32Value(v)
	},
	"maxWireVersion": func(d *event.ServerDescription, _ *flags, v bson.RawValue) {
		d.MaxWireVersion = int32Value(v)
	},
	"maxBsonObjectSize": func(d *event.ServerDescription, _ *flags, v bson.RawValue) {
		d.MaxBSONObjectSize = int32Value(v)
	},
	"maxMessageSizeBytes": func(d *event.ServerDescription, _ *flags, v bson.RawValue) {
		d.MaxMessageSize = int32Value(v)
	},
	"maxWriteBatchSize": func(d *event.ServerDescription, _ *flags, v bson.RawValue) {
		d.MaxWriteBatchSize = int32Value(v)
	},
	"compression": func(d *event.ServerDescription, _ *flags, v bson.RawValue) {
		d.Compressors = failure.Strings(v)
	},
	"helloOk":    func(d *event.ServerDescription, _ *flags, v bson.RawValue) { d.HelloOK = v.AsBool() },
	"iscryptd":   func(d *event.ServerDescription, _ *flags, v bson.RawValue) { d.Cryptd = v.AsBool() },
	"setVersion": func(d *event.ServerDescription, _ *flags, v bson.RawValue) { d.SetVersion = int64Ptr(v) },
	"electionId": func(d *event.ServerDescription, _ *flags, v bson.RawValue) { d.ElectionID = idPtr(v) },
	"serviceId":  func(d *event.ServerDescription, _ *flags, v bson.RawValue) { d.ServiceID = idPtr(v) },
	"connectionId": func(d *event.ServerDescription, _ *flags, v bson.RawValue) {
		d.ServerConnectionID = int64Ptr(v)
	},
	"logicalSessionTimeoutMinutes": func(d *event.ServerDescription, _ *flags, v bson.RawValue) {
		d.SessionTimeoutMinutes = int64Ptr(v)
	},
	"topologyVersion": func(d *event.ServerDescription, _ *flags, v bson.RawValue) {
		if doc, ok := v.Document(); ok {
			d.TopologyVersion = ParseTopologyVersion(doc)
		}
	},
	"tags": func(d *event.ServerDescription, _ *flags, v bson.RawValue) {
		doc, _ := v.Document()
		for name, v := range doc.All() {
			if s, ok := v.StringValue(); ok {
				if d.Tags == nil {
					d.Tags = event.TagSet{}
				}
				d.Tags[name] = s
			}
		}
	},
	"lastWrite": func(d *event.ServerDescription, _ *flags, v bson.RawValue) {
		doc, _ := v.Document()
		if t, ok := doc.Lookup("lastWriteDate").DateTime(); ok {
			d.LastWriteDate = time.UnixMilli(int64(t))
		}
		if op, ok := doc.Lookup("opTime").Document(); ok {
			ts, _ := op.Lookup("ts").Timestamp()
			term, _ := op.Lookup("t").AsInt64()
			d.OpTime = &event.OpTime{Timestamp: ts, Term: term}
		}
	},
}

func addrValue(v bson.RawValue) string {
	s, _ := v.StringValue()
	if s == "" {
		return ""
	}
	return Addr(s)
}

// addrs returns the addresses in an array: no more than it takes to see that there are too many.
func addrs(v bson.RawValue) []string {
	arr, _ := v.Array()
	var out []string
	for el := range arr.Values() {
		if s, ok := el.StringValue(); ok {
			out = append(out, Addr(s))
		}
		if len(out) > MaxMembers {
			break
		}
	}
	return out
}

func int32Value(v bson.RawValue) int32 {
	n, _ := v.AsInt64()
	return int32(min(max(n, 0), math.MaxInt32))
}

func int64Ptr(v bson.RawValue) *int64 {
	n, ok := v.AsInt64()
	if !ok {
		return nil
	}
	return &n
}

func idPtr(v bson.RawValue) *bson.ObjectID {
	id, ok := v.ObjectID()
	if !ok {
		return nil
	}
	return &id
}
