package server

import (
	"allium/bson"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
)

// maxMetadata is how much a client may tell about itself; mongos keeps the smaller bound it had.
const (
	maxMetadata       = 1024
	maxMetadataMongos = 512
	maxAppName        = 128
)

// Streams reports whether hello can wait for changes of the topology and carries a topologyVersion.
func (n *Node) Streams() bool { return n.cfg.Version.Has(release.Reply, "hello.topologyVersion") }

// NotesClientEarly reports whether the server reads what a client says about itself before it
// applies fail points, which may be for one application only: from 4.4.7 on.
func (r *Request) NotesClientEarly() bool {
	return r.Version().AtLeastPatch(release.At(4, 4, 7))
}

// NoteClient keeps what the client says about itself in its first hello.
func (r *Request) NoteClient() error {
	c := &r.Conn.client
	v := r.Body.Lookup("client")
	if v.IsZero() {
		c.sawHello = true
		return nil
	}
	if r.Streaming {
		return nil
	}
	if c.sawHello {
		first := r.Cmd.Name
		if r.Version().AtLeast(5, 0) {
			first = "hello"
		}
		return srverr.New(srverr.ClientMetadataCannotBeMutated,
			"The client metadata document may only be sent in the first %s", first)
	}
	c.sawHello = true
	if v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray {
		return srverr.New(srverr.TypeMismatch, "The client metadata document must be a document")
	}
	limit := maxMetadata
	if r.Routing != nil {
		limit = maxMetadataMongos
	}
	if len(v.Value) > limit {
		return srverr.New(srverr.ClientMetadataDocumentTooLarge,
			"The client metadata document must be less then or equal to %dbytes", limit)
	}
	meta := bson.Raw(append([]byte(nil), v.Value...))
	name, err := checkMetadata(meta)
	if err != nil {
		return err
	}
	r.Conn.mu.Lock() // for currentOp
	defer r.Conn.mu.Unlock()
	c.metadata, c.appName = meta, name
	return nil
}

func checkMetadata(meta bson.Raw) (appName string, err error) {
	sub := func(doc bson.RawValue, name string) (bson.Raw, error) {
		if doc.Type != bson.TypeEmbeddedDocument {
			return nil, srverr.New(srverr.TypeMismatch,
				"The '%s' field is required to be a BSON document in the client metadata document", name)
		}
		return doc.Value, nil
	}
	text := func(v bson.RawValue, name string) (string, error) {
		s, ok := v.StringValue()
		if !ok {
			return "", srverr.New(srverr.TypeMismatch,
				"The '%s' field must be a string in the client metadata document", name)
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
				return "", srverr.New(srverr.ClientMetadataAppNameTooLarge,
					"The 'application.name' field must be less then or equal to %d bytes in the client metadata document", maxAppName)
			}
		}
	}
	for _, part := range []struct {
		name   string
		fields []string
	}{{"driver", []string{"name", "version"}}, {"os", []string{"type"}}} {
		v := meta.Lookup(part.name)
		if v.IsZero() {
			return "", srverr.New(srverr.ClientMetadataMissingField,
				"Missing required sub-document '%s' in the client metadata document", part.name)
		}
		doc, err := sub(v, part.name)
		if err != nil {
			return "", err
		}
		for _, f := range part.fields {
			v, name := doc.Lookup(f), part.name+"."+f
			if v.IsZero() {
				return "", srverr.New(srverr.ClientMetadataMissingField,
					"Missing required field '%s' in the client metadata document", name)
			}
			if _, err := text(v, name); err != nil {
				return "", err
			}
		}
	}
	return appName, nil
}
