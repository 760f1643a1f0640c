// Package login has the commands that a connection begins with: hello, and those that authenticate.
// The mechanisms are conversations that a connection keeps in Conn.SASL; SCRAM's own part, users
// and keys are in package account.
package login

import (
	"slices"
	"time"

	"allium/bson"
	"allium/internal/wire"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/server"
	"allium/mongotest/internal/session"
	"allium/mongotest/internal/srverr"
)

func init() {
	server.Register(&server.Command{
		Name: "isMaster", Aliases: []string{"ismaster"},
		Help: "Check if this server is primary for a replica set\n{ isMaster : 1 }", NoAuth: true, OpQuery: true,
		API: server.V1, DataLake: true, Where: server.Anywhere, Run: runHello,
	})
	server.Register(&server.Command{Name: "hello", API: server.V1, DataLake: true, NoAuth: true, OpQuery: true,
		Where: server.Anywhere, Run: runHello})
}

// runHello answers hello and its older name isMaster (specifications: handshake, server
// monitoring).
func runHello(r *server.Request, dst []byte) ([]byte, error) {
	n, legacy := r.Node, r.Name != "hello"
	if n.Config().RequireLoadBalanced && !r.Conn.Trusted() && !r.Conn.Client().LoadBalanced {
		if !r.Body.Lookup("loadBalanced").AsBool() {
			return dst, srverr.New(srverr.LoadBalancerSupportMismatch,
				"The server is being accessed through a load balancer, but this driver does not have load balancing enabled")
		}
		r.Conn.Client().LoadBalanced = true
	}
	if !r.NotesClientEarly() {
		if err := r.NoteClient(); err != nil {
			return dst, err
		}
	}
	if err := checkInternalClient(r); err != nil {
		return dst, err
	}
	if err := agreeCompression(r); err != nil {
		return dst, err
	}
	if err := awaitTopology(r); err != nil {
		return dst, err
	}
	tv, _ := n.TopologyVersion()
	r.Streamed = tv
	if r.More && r.Flags&wire.ExhaustAllowed != 0 {
		r.Streaming = true
	}
	if r.Routing == nil && n.Streams() {
		dst = tv.Append(dst)
	}
	if v := r.Body.Lookup("helloOk"); v.AsBool() && n.Config().Version.Has(release.Command, "hello") {
		dst = bson.AppendBool(dst, "helloOk", true)
	}
	switch {
	case n.Set() != nil:
		dst = n.Set().AppendHello(dst, n, n.Config().Version, legacy)
	case legacy:
		dst = bson.AppendBool(dst, "ismaster", true)
	default:
		dst = bson.AppendBool(dst, "isWritablePrimary", true)
	}
	if r.Routing != nil {
		dst = bson.AppendString(dst, "msg", "isdbgrid")
	}
	if n.Config().RequireLoadBalanced && !r.Conn.Trusted() {
		dst = bson.AppendObjectID(dst, "serviceId", n.ProcessID())
	}
	if n.IsConfigServer() {
		dst = bson.AppendInt32(dst, "configsvr", 2)
	}
	dst = bson.AppendInt32(dst, "maxBsonObjectSize", server.MaxBSONObjectSize)
	dst = bson.AppendInt32(dst, "maxMessageSizeBytes", server.MaxMessageSize)
	dst = bson.AppendInt32(dst, "maxWriteBatchSize", server.MaxWriteBatchSize)
	dst = bson.AppendDateTime(dst, "localTime", bson.NewDateTime(n.Data().Clock.Now()))
	dst = bson.AppendInt32(dst, "logicalSessionTimeoutMinutes", int32(session.Timeout/time.Minute))
	dst = bson.AppendInt32(dst, "connectionId", r.Conn.ID())
	dst = bson.AppendInt32(dst, "minWireVersion", 0)
	dst = bson.AppendInt32(dst, "maxWireVersion", n.Config().Version.MaxWire())
	if r.Routing == nil {
		dst = bson.AppendBool(dst, "readOnly", false)
	}
	if len(r.Conn.Client().Compressors) > 0 {
		dst = bsondoc.AppendStrings(dst, "compression", r.Conn.Client().Compressors)
	}
	if r.Routing != nil && n.Streams() {
		dst = tv.Append(dst)
	}
	dst, err := appendMechanisms(r, dst)
	if err != nil {
		return dst, err
	}
	return appendSpeculative(r, dst)
}

// checkInternalClient checks what another member says of itself; a mongos does not look at it.
func checkInternalClient(r *server.Request) error {
	v := r.Body.Lookup("internalClient")
	if v.IsZero() || r.Routing != nil {
		return nil
	}
	if v.Type != bson.TypeEmbeddedDocument && r.Version().AtLeast(5, 0) {
		return nil
	}
	if v.Type != bson.TypeEmbeddedDocument {
		return srverr.New(srverr.TypeMismatch, "'internalClient' must be of type Object, but was of type %s",
			bsontext.TypeName(v.Type))
	}
	found := false
	for k, e := range bson.Raw(v.Value).All() {
		switch {
		case k == "minWireVersion":
		case k != "maxWireVersion":
			return srverr.New(srverr.BadValue, "Unrecognized field of 'internalClient': '%s'", k)
		case e.Type != bson.TypeInt32:
			return srverr.New(srverr.TypeMismatch,
				"'maxWireVersion' field of 'internalClient' must be of type int, but was of type %s",
				bsontext.TypeName(e.Type))
		default:
			found = true
		}
	}
	if !found {
		return srverr.New(srverr.BadValue, "Missing required field 'maxWireVersion' of 'internalClient'")
	}
	return nil
}

// agreeCompression takes those of the client's compressors that the node has, in the client's
// order.
func agreeCompression(r *server.Request) error {
	v := r.Body.Lookup("compression")
	if v.IsZero() || r.Streaming {
		return nil
	}
	if v.Type != bson.TypeArray && v.Type != bson.TypeEmbeddedDocument {
		return srverr.New(10065, "invalid parameter: expected an object (compression)")
	}
	var agreed []string
	for k, e := range bson.Raw(v.Value).All() {
		name, ok := e.StringValue()
		if !ok {
			return srverr.New(13111, "wrong type for field (%s) %s != string", k, bsontext.TypeName(e.Type))
		}
		if slices.Contains(r.Node.Config().Compressors, name) && !slices.Contains(agreed, name) {
			agreed = append(agreed, name)
		}
	}
	r.Conn.Client().Compressors = agreed
	return nil
}

// awaitTopology lets a streaming hello wait until the topology version is another than the client
// knows.
func awaitTopology(r *server.Request) error {
	tv, maxAwait := r.Body.Lookup("topologyVersion"), r.Body.Lookup("maxAwaitTimeMS")
	var known server.TopologyVersion
	if r.Streaming {
		known = r.Streamed
	} else {
		var err error
		if known, err = parseTopologyVersion(r, tv, maxAwait); err != nil || tv.IsZero() {
			return err
		}
	}
	r.More = true
	ms, _ := args.NumberOf(maxAwait)
	end := time.Now().Add(time.Duration(ms) * time.Millisecond)
	for {
		now, changed := r.Node.TopologyVersion()
		if now.ProcessID != known.ProcessID || now.Counter > known.Counter {
			return nil
		}
		if now.Counter < known.Counter {
			return srverr.New(
				31382, "Received a topology version with counter: %d which is greater than the server topology version counter: %d", known.Counter, now.Counter)
		}
		left := time.Until(end)
		if left <= 0 {
			return nil
		}
		if _, err := r.Wait(changed, left); err != nil {
			return err
		}
	}
}

// parseTopologyVersion checks the pair of arguments; mongos has codes of its own.
func parseTopologyVersion(r *server.Request, tv, maxAwait bson.RawValue) (v server.TopologyVersion, err error) {
	pairCode, counterCode, negativeCode, exhaustCode := int32(31368), int32(31372), int32(31373), int32(51756)
	if r.Routing != nil {
		pairCode, counterCode, negativeCode, exhaustCode = 51760, 51758, 51759, 51763
	}
	switch {
	case !tv.IsZero() && maxAwait.IsZero():
		return v, srverr.New(pairCode, "A request with a 'topologyVersion' must include 'maxAwaitTimeMS'")
	case !tv.IsZero():
		if tv.Type != bson.TypeEmbeddedDocument && tv.Type != bson.TypeArray {
			return v, srverr.New(10065, "invalid parameter: expected an object (topologyVersion)")
		}
		if v, err = readTopologyVersion(tv.Value); err != nil {
			return v, err
		}
		if v.Counter < 0 {
			return v, srverr.New(counterCode, "topologyVersion must have a non-negative counter")
		}
		ms, exact := maxAwait.AsInt64()
		switch {
		case maxAwait.IsNumber() && !exact && !r.Version().AtLeast(5, 0):
			return v, srverr.New(
				srverr.BadValue, "Expected field \"maxAwaitTimeMS\" to have a value exactly representable as a 64-bit integer, but found %s", bsontext.Element("maxAwaitTimeMS", maxAwait))
		case !maxAwait.IsNumber():
			return v, srverr.New(srverr.TypeMismatch,
				"Expected field \"maxAwaitTimeMS\" to have numeric type, but found %s",
				bsontext.TypeName(maxAwait.Type))
		}
		if ms < 0 {
			return v, srverr.New(negativeCode, "maxAwaitTimeMS must be a non-negative integer")
		}
		return v, nil
	case !maxAwait.IsZero():
		return v, srverr.New(pairCode, "A request with 'maxAwaitTimeMS' must include a 'topologyVersion'")
	case r.Flags&wire.ExhaustAllowed != 0:
		return v, srverr.New(exhaustCode, "An isMaster request with exhaust must specify 'maxAwaitTimeMS'")
	}
	return v, nil
}

func readTopologyVersion(doc bson.Raw) (v server.TopologyVersion, err error) {
	var hasID, hasCounter bool
	for k, e := range doc.All() {
		switch k {
		case "processId":
			if v.ProcessID, hasID = e.ObjectID(); !hasID {
				return v, args.WrongType("TopologyVersion.processId", e.Type, "objectId")
			}
		case "counter":
			if v.Counter, hasCounter = e.Int64(); !hasCounter {
				return v, args.WrongType("TopologyVersion.counter", e.Type, "long")
			}
		default:
			return v, args.UnknownField("TopologyVersion." + k)
		}
	}
	switch {
	case !hasID:
		return v, args.MissingField("TopologyVersion.processId")
	case !hasCounter:
		return v, args.MissingField("TopologyVersion.counter")
	}
	return v, nil
}
