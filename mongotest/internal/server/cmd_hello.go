package server

import (
	"slices"
	"time"

	"allium/bson"
	"allium/internal/wire"
	"allium/mongotest/internal/arg"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/session"
	"allium/mongotest/internal/srverr"
)

func init() {
	register(&Command{Name: "isMaster", Aliases: []string{"ismaster"}, NoAuth: true, Where: Anywhere, Run: runHello})
	register(&Command{Name: "hello", Has: release.Version.HasHello, NoAuth: true, Where: Anywhere, Run: runHello})
}

// maxMetadata is how much a client may tell about itself; mongos keeps the smaller bound it had.
const (
	maxMetadata       = 1024
	maxMetadataMongos = 512
	maxAppName        = 128
)

// runHello answers hello and its older name isMaster (specifications: handshake, server
// monitoring).
func runHello(r *Request, dst []byte) ([]byte, error) {
	n, legacy := r.Node, r.Name != "hello"
	if n.cfg.RequireLoadBalanced && !r.Conn.client.loadBalanced {
		if !r.Body.Lookup("loadBalanced").AsBool() {
			return dst, srverr.New(srverr.LoadBalancerSupportMismatch, "The server is being accessed through a load balancer, but this driver does not have load balancing enabled")
		}
		r.Conn.client.loadBalanced = true
	}
	if !r.notesClientEarly() {
		if err := r.noteClient(); err != nil {
			return dst, err
		}
	}
	if v := r.Body.Lookup("internalClient"); v.Type == bson.TypeEmbeddedDocument && bson.Raw(v.Value).Lookup("maxWireVersion").IsZero() {
		return dst, srverr.New(srverr.BadValue, "Missing required field 'maxWireVersion' of 'internalClient'")
	}
	if err := r.agreeCompression(); err != nil {
		return dst, err
	}
	if err := r.awaitTopology(); err != nil {
		return dst, err
	}
	tv, _ := n.topologyVersion()
	r.streamed = tv
	if r.more && r.flags&wire.ExhaustAllowed != 0 {
		r.streaming = true
	}
	if n.role != Mongos && n.streams() {
		dst = tv.append(dst)
	}
	if v := r.Body.Lookup("helloOk"); v.AsBool() && n.cfg.Version.HasHello() {
		dst = bson.AppendBool(dst, "helloOk", true)
	}
	switch {
	case n.set != nil:
		dst = n.set.AppendHello(dst, n, n.cfg.Version, legacy)
	case legacy:
		dst = bson.AppendBool(dst, "ismaster", true)
	default:
		dst = bson.AppendBool(dst, "isWritablePrimary", true)
	}
	if n.role == Mongos {
		dst = bson.AppendString(dst, "msg", "isdbgrid")
	}
	if n.cfg.RequireLoadBalanced {
		dst = bson.AppendObjectID(dst, "serviceId", n.processID)
	}
	dst = bson.AppendInt32(dst, "maxBsonObjectSize", MaxBSONObjectSize)
	dst = bson.AppendInt32(dst, "maxMessageSizeBytes", MaxMessageSize)
	dst = bson.AppendInt32(dst, "maxWriteBatchSize", MaxWriteBatchSize)
	dst = bson.AppendDateTime(dst, "localTime", bson.NewDateTime(n.data.Clock.Now()))
	dst = bson.AppendInt32(dst, "logicalSessionTimeoutMinutes", int32(session.Timeout/time.Minute))
	dst = bson.AppendInt32(dst, "connectionId", r.Conn.id)
	dst = bson.AppendInt32(dst, "minWireVersion", 0)
	dst = bson.AppendInt32(dst, "maxWireVersion", n.cfg.Version.MaxWire())
	if n.role != Mongos {
		dst = bson.AppendBool(dst, "readOnly", false)
	}
	if len(r.Conn.client.compressors) > 0 {
		dst = bsondoc.AppendStrings(dst, "compression", r.Conn.client.compressors)
	}
	if n.role == Mongos && n.streams() {
		dst = tv.append(dst)
	}
	dst, err := r.appendMechanisms(dst)
	if err != nil {
		return dst, err
	}
	return r.appendSpeculative(dst)
}

// streams reports whether hello can wait for changes of the topology, and says which version of it
// it tells of.
func (n *Node) streams() bool { return n.cfg.Version.AtLeast(4, 4) }

// notesClientEarly reports whether the server reads what a client says about itself before it
// applies fail points, which may be for one application only: from 4.4.7 on.
func (r *Request) notesClientEarly() bool {
	return r.Node.cfg.Version.AtLeastPatch(release.At(4, 4, 7))
}

// noteClient keeps what the client says about itself in its first hello.
func (r *Request) noteClient() error {
	c := &r.Conn.client
	v := r.Body.Lookup("client")
	if v.IsZero() {
		c.sawHello = true
		return nil
	}
	if r.streaming {
		return nil
	}
	if c.sawHello {
		return srverr.New(srverr.ClientMetadataCannotBeMutated, "The client metadata document may only be sent in the first %s", r.Cmd.Name)
	}
	c.sawHello = true
	if v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray {
		return srverr.New(srverr.TypeMismatch, "The client metadata document must be a document")
	}
	limit := maxMetadata
	if r.Node.role == Mongos {
		limit = maxMetadataMongos
	}
	if len(v.Value) > limit {
		return srverr.New(srverr.ClientMetadataDocumentTooLarge, "The client metadata document must be less then or equal to %dbytes", limit)
	}
	meta := bson.Raw(append([]byte(nil), v.Value...))
	name, err := checkMetadata(meta)
	if err != nil {
		return err
	}
	c.metadata, c.appName = meta, name
	return nil
}

// agreeCompression takes those of the client's compressors that the node has, in the client's
// order.
func (r *Request) agreeCompression() error {
	v := r.Body.Lookup("compression")
	if v.IsZero() || r.streaming {
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
		if slices.Contains(r.Node.cfg.Compressors, name) && !slices.Contains(agreed, name) {
			agreed = append(agreed, name)
		}
	}
	r.Conn.client.compressors = agreed
	return nil
}

func checkMetadata(meta bson.Raw) (appName string, err error) {
	sub := func(doc bson.RawValue, name string) (bson.Raw, error) {
		if doc.Type != bson.TypeEmbeddedDocument {
			return nil, srverr.New(srverr.TypeMismatch, "The '%s' field is required to be a BSON document in the client metadata document", name)
		}
		return doc.Value, nil
	}
	text := func(v bson.RawValue, name string) (string, error) {
		s, ok := v.StringValue()
		if !ok {
			return "", srverr.New(srverr.TypeMismatch, "The '%s' field must be a string in the client metadata document", name)
		}
		return s, nil
	}
	if v := meta.Lookup("application"); !v.IsZero() {
		app, err := sub(v, "application")
		if err != nil {
			return "", err
		}
		if v := app.Lookup("name"); !v.IsZero() {
			if appName, err = text(v, "application.name"); err != nil {
				return "", err
			}
			if len(appName) > maxAppName {
				return "", srverr.New(srverr.ClientMetadataAppNameTooLarge, "The 'application.name' field must be less then or equal to %d bytes in the client metadata document", maxAppName)
			}
		}
	}
	for _, part := range []struct {
		name   string
		fields []string
	}{{"driver", []string{"name", "version"}}, {"os", []string{"type"}}} {
		v := meta.Lookup(part.name)
		if v.IsZero() {
			return "", srverr.New(srverr.ClientMetadataMissingField, "Missing required sub-document '%s' in the client metadata document", part.name)
		}
		doc, err := sub(v, part.name)
		if err != nil {
			return "", err
		}
		for _, f := range part.fields {
			v, name := doc.Lookup(f), part.name+"."+f
			if v.IsZero() {
				return "", srverr.New(srverr.ClientMetadataMissingField, "Missing required field '%s' in the client metadata document", name)
			}
			if _, err := text(v, name); err != nil {
				return "", err
			}
		}
	}
	return appName, nil
}

// awaitTopology lets a streaming hello wait until the topology version is another than the client
// knows.
func (r *Request) awaitTopology() error {
	tv, maxAwait := r.Body.Lookup("topologyVersion"), r.Body.Lookup("maxAwaitTimeMS")
	var known topologyVersion
	if r.streaming {
		known = r.streamed
	} else {
		var err error
		if known, err = r.parseTopologyVersion(tv, maxAwait); err != nil || tv.IsZero() {
			return err
		}
	}
	r.more = true
	ms, _ := arg.Number(maxAwait)
	end := time.Now().Add(time.Duration(ms) * time.Millisecond)
	for {
		now, changed := r.Node.topologyVersion()
		if now.processID != known.processID || now.counter > known.counter {
			return nil
		}
		if now.counter < known.counter {
			return srverr.New(31382, "Received a topology version with counter: %d which is greater than the server topology version counter: %d", known.counter, now.counter)
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
func (r *Request) parseTopologyVersion(tv, maxAwait bson.RawValue) (v topologyVersion, err error) {
	pairCode, negativeCode, exhaustCode := int32(31368), int32(31373), int32(51756)
	if r.Node.role == Mongos {
		pairCode, negativeCode, exhaustCode = 51760, 51759, 51763
	}
	switch {
	case !tv.IsZero():
		if tv.Type != bson.TypeEmbeddedDocument && tv.Type != bson.TypeArray {
			return v, srverr.New(10065, "invalid parameter: expected an object (topologyVersion)")
		}
		if v, err = readTopologyVersion(tv.Value); err != nil {
			return v, err
		}
		if maxAwait.IsZero() {
			return v, srverr.New(pairCode, "A request with a 'topologyVersion' must include 'maxAwaitTimeMS'")
		}
		ms, ok := arg.Number(maxAwait)
		if !ok {
			return v, srverr.New(srverr.TypeMismatch, "Expected field \"maxAwaitTimeMS\" to have numeric type, but found %s", bsontext.TypeName(maxAwait.Type))
		}
		if ms < 0 {
			return v, srverr.New(negativeCode, "maxAwaitTimeMS must be a non-negative integer")
		}
		return v, nil
	case !maxAwait.IsZero():
		return v, srverr.New(pairCode, "A request with 'maxAwaitTimeMS' must include a 'topologyVersion'")
	case r.flags&wire.ExhaustAllowed != 0:
		return v, srverr.New(exhaustCode, "An isMaster request with exhaust must specify 'maxAwaitTimeMS'")
	}
	return v, nil
}

func readTopologyVersion(doc bson.Raw) (v topologyVersion, err error) {
	var hasID, hasCounter bool
	for k, e := range doc.All() {
		switch k {
		case "processId":
			if v.processID, hasID = e.ObjectID(); !hasID {
				return v, arg.WrongType("TopologyVersion.processId", e.Type, "objectId")
			}
		case "counter":
			if v.counter, hasCounter = e.Int64(); !hasCounter {
				return v, arg.WrongType("TopologyVersion.counter", e.Type, "long")
			}
		default:
			return v, arg.UnknownField("TopologyVersion." + k)
		}
	}
	switch {
	case !hasID:
		return v, arg.MissingField("TopologyVersion.processId")
	case !hasCounter:
		return v, arg.MissingField("TopologyVersion.counter")
	case v.counter < 0:
		return v, srverr.New(31372, "topologyVersion must have a non-negative counter")
	}
	return v, nil
}
