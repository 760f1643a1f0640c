package unified

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"allium"
	"allium/bson"
)

// checkError compares an error with what a test expects of it.
func (r *runner) checkError(want bson.Raw, err error, res result) error {
	a := &arguments{doc: want}
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%s; the error is %T: %[2]v", fmt.Sprintf(format, args...), err)
	}
	a.bool("isError")
	if client := a.bool("isClientError"); client != nil && *client == fromServer(err) {
		return fail("expected isClientError to be %v", *client)
	}
	if timeout := a.bool("isTimeoutError"); timeout != nil {
		var t *allium.TimeoutError
		if errors.As(err, &t) != *timeout {
			return fail("expected isTimeoutError to be %v", *timeout)
		}
	}
	if s := a.string("errorContains"); s != "" && !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(s)) {
		return fail("expected the message to contain %q", s)
	}
	codes, name, replies := serverSide(err)
	if v := a.raw("errorCode"); !v.IsZero() {
		if n, _ := v.AsInt64(); !slices.Contains(codes, int32(n)) {
			return fail("expected error code %d", n)
		}
	}
	if s := a.string("errorCodeName"); s != "" && s != name {
		return fail("expected error code name %q, got %q", s, name)
	}
	for v := range rawArray(a.raw("errorLabelsContain")) {
		if l, _ := v.StringValue(); !allium.HasErrorLabel(err, l) {
			return fail("expected the label %q", l)
		}
	}
	for v := range rawArray(a.raw("errorLabelsOmit")) {
		if l, _ := v.StringValue(); allium.HasErrorLabel(err, l) {
			return fail("the label %q was not expected", l)
		}
	}
	if v := a.raw("errorResponse"); !v.IsZero() {
		if len(replies) == 0 {
			return fail("expected a response of the server")
		}
		if err := match(v, bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: replies[0]}, true, r.entities); err != nil {
			return fail("response: %v", err)
		}
	}
	if v := a.raw("expectResult"); !v.IsZero() {
		if err := r.checkResult(v, res); err != nil {
			return fail("result beside the error: %v", err)
		}
	}
	return a.done()
}

// fromServer reports whether a server answered an error, or the network failed: what the format does not call a client error.
func fromServer(err error) bool {
	codes, _, _ := serverSide(err)
	return len(codes) > 0
}

// serverSide returns the codes and the name that an error brings from the server, and the replies.
func serverSide(err error) (codes []int32, name string, replies []bson.Raw) {
	var (
		s  *allium.ServerError
		w  *allium.WriteError
		wc *allium.WriteConcernError
		b  *allium.BulkWriteError
	)
	if errors.As(err, &b) {
		for _, e := range b.WriteErrors {
			codes = append(codes, e.Code)
		}
		for _, e := range b.WriteConcernErrors {
			codes = append(codes, e.Code)
		}
	}
	if errors.As(err, &s) {
		codes, name, replies = append(codes, s.Code), s.Name, append(replies, s.Raw)
	}
	if errors.As(err, &w) {
		codes, replies = append(codes, w.Code), append(replies, w.Raw)
	}
	if errors.As(err, &wc) {
		codes, name, replies = append(codes, wc.Code), wc.Name, append(replies, wc.Raw)
	}
	return codes, name, replies
}

// checkEvents compares the events of a client with those that are expected.
func (r *runner) checkEvents(want *Events) error {
	c, err := get[*clientEntity](r.entities, want.Client)
	if err != nil {
		return err
	}
	kind := want.Type
	if kind == "" {
		kind = "command"
	}
	got := c.of(kind)
	list := func() string {
		var b strings.Builder
		for _, e := range got {
			fmt.Fprintf(&b, "\n\t%s %v", e.name, e.fields)
		}
		return b.String()
	}
	if len(got) < len(want.Events) || len(got) > len(want.Events) && !want.IgnoreExtra {
		return fmt.Errorf("%d %s events expected, got %d:%s", len(want.Events), kind, len(got), list())
	}
	for i, doc := range want.Events {
		for name, v := range doc.All() {
			if name != got[i].name {
				return fmt.Errorf("event %d: %s expected, got:%s", i, name, list())
			}
			if err := r.checkEvent(v, got[i]); err != nil {
				return fmt.Errorf("event %d (%s): %w", i, name, err)
			}
		}
	}
	return nil
}

func (r *runner) checkEvent(want bson.RawValue, got observedEvent) error {
	doc, ok := want.Document()
	if !ok {
		return fmt.Errorf("expected event is %v", want)
	}
	for key, v := range doc.All() {
		switch key {
		case "hasServiceId":
			if v.AsBool() != got.service {
				return fmt.Errorf("hasServiceId is %v", got.service)
			}
		case "hasServerConnectionId":
			if v.AsBool() != got.server {
				return fmt.Errorf("hasServerConnectionId is %v", got.server)
			}
		default:
			if err := match(v, got.fields.Lookup(key), true, r.entities); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
	}
	return nil
}

// checkOutcome compares what collections hold.
func (r *runner) checkOutcome(ctx context.Context, outcome []Data) error {
	for _, d := range outcome {
		coll := allium.CollectionOf[bson.Raw](r.deployment.admin.Database(d.Database), d.Collection).With(allium.CollectionOptions{
			ReadConcern: &allium.ReadConcern{Level: "local"}, ReadPreference: &allium.ReadPreference{}})
		cur, err := coll.Find(ctx, bson.D{}, allium.FindOptions{Sort: bson.D{{Key: "_id", Value: 1}}})
		if err != nil {
			return err
		}
		got, err := cur.All(ctx)
		if err != nil {
			return err
		}
		if len(got) != len(d.Documents) {
			return fmt.Errorf("outcome: %s holds %v, expected %v", d.Collection, got, d.Documents)
		}
		for i := range got {
			if !bson.Equal(got[i], d.Documents[i]) {
				if err := match(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: d.Documents[i]}, bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: got[i]}, false, r.entities); err != nil {
					return fmt.Errorf("outcome: %s, document %d: %w", d.Collection, i, err)
				}
			}
		}
	}
	return nil
}

// special runs an operation of the test runner itself.
func (r *runner) special(ctx context.Context, name string, a *arguments) (result, error) {
	switch name {
	case "createEntities":
		return result{}, r.createEntities(ctx, a.documents("entities"))
	case "failPoint":
		c, err := get[*clientEntity](r.entities, a.string("client"))
		if err != nil {
			return result{}, err
		}
		a.string("session")
		return result{}, r.failPoint(ctx, c.Client, a.document("failPoint"))
	case "targetedFailPoint":
		s, err := get[*sessionEntity](r.entities, a.string("session"))
		if err != nil {
			return result{}, err
		}
		addr := s.PinnedServer()
		if addr == "" {
			return result{}, errors.New("the session is not pinned")
		}
		direct, err := allium.Open("mongodb://"+addr+"/", allium.ClientOptions{Direct: new(true)})
		if err != nil {
			return result{}, err
		}
		r.clients = append(r.clients, &clientEntity{Client: direct})
		return result{}, r.failPoint(ctx, direct, a.document("failPoint"))
	case "assertSessionPinned", "assertSessionUnpinned":
		s, err := get[*sessionEntity](r.entities, a.string("session"))
		if err != nil {
			return result{}, err
		}
		if pinned := s.Pinned(); pinned != (name == "assertSessionPinned") {
			return result{}, fmt.Errorf("pinned is %v", pinned)
		}
		return result{}, nil
	case "assertSessionTransactionState":
		return result{}, errors.New("operation is not known")
	case "assertSameLsidOnLastTwoCommands", "assertDifferentLsidOnLastTwoCommands":
		c, err := get[*clientEntity](r.entities, a.string("client"))
		if err != nil {
			return result{}, err
		}
		var ids []bson.RawValue
		for _, e := range c.of("command") {
			if e.command != nil {
				ids = append(ids, e.command.Lookup("lsid"))
			}
		}
		if len(ids) < 2 {
			return result{}, fmt.Errorf("only %d commands were sent", len(ids))
		}
		same := bson.Compare(ids[len(ids)-1], ids[len(ids)-2]) == 0
		if same != (name == "assertSameLsidOnLastTwoCommands") {
			return result{}, fmt.Errorf("the same lsid: %v", same)
		}
		return result{}, nil
	case "assertNumberConnectionsCheckedOut":
		c, err := get[*clientEntity](r.entities, a.string("client"))
		if err != nil {
			return result{}, err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if want := a.int("connections"); int64(c.checkedOut) != want {
			return result{}, fmt.Errorf("%d connections are checked out, expected %d", c.checkedOut, want)
		}
		return result{}, nil
	case "assertCollectionExists", "assertCollectionNotExists":
		names, err := r.deployment.admin.Database(a.string("databaseName")).ListCollectionNames(ctx)
		if err != nil {
			return result{}, err
		}
		if there := slices.Contains(names, a.string("collectionName")); there != (name == "assertCollectionExists") {
			return result{}, fmt.Errorf("collection exists: %v", there)
		}
		return result{}, nil
	case "assertIndexExists", "assertIndexNotExists":
		cur, err := r.deployment.admin.Database(a.string("databaseName")).Collection(a.string("collectionName")).ListIndexes(ctx)
		if err != nil {
			return result{}, err
		}
		all, err := cur.All(ctx)
		if err != nil {
			return result{}, err
		}
		want := a.string("indexName")
		there := slices.ContainsFunc(all, func(i allium.IndexInfo) bool { return i.Name == want })
		if there != (name == "assertIndexExists") {
			return result{}, fmt.Errorf("index exists: %v", there)
		}
		return result{}, nil
	case "wait":
		select {
		case <-time.After(a.millis("ms")):
		case <-ctx.Done():
		}
		return result{}, nil
	}
	return result{}, fmt.Errorf("operation %q of the test runner is not known", name)
}

// failPoint sets a fail point, and notes that it must be switched off after the test.
func (r *runner) failPoint(ctx context.Context, c *allium.Client, cmd bson.Raw) error {
	admin := c.Database("admin")
	if _, err := admin.RunCommand(ctx, cmd); err != nil {
		return err
	}
	name, _ := cmd.Lookup("configureFailPoint").StringValue()
	r.failPoints = append(r.failPoints, func(ctx context.Context) {
		off := bson.D{{Key: "configureFailPoint", Value: name}, {Key: "mode", Value: "off"}}
		if _, err := admin.RunCommand(ctx, off); errors.Is(err, allium.ErrClientClosed) {
			r.deployment.admin.Database("admin").RunCommand(ctx, off)
		}
	})
	return nil
}
