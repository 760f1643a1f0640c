package otel_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"allium"
	"allium/bson"
	"allium/mongotest"
	"allium/otel"
	"allium/tracing"
)

const (
	enabled   = "OTEL_INSTRUMENTATION_MONGODB_ENABLED"
	queryText = "OTEL_INSTRUMENTATION_MONGODB_QUERY_TEXT_MAX_LENGTH"
)

// newProvider returns a provider and what its spans go to.
func newProvider() (*sdk.TracerProvider, *tracetest.InMemoryExporter) {
	exporter := tracetest.NewInMemoryExporter()
	return sdk.NewTracerProvider(sdk.WithSyncer(exporter)), exporter
}

func open(t *testing.T, d *mongotest.Deployment, tr *allium.Tracing) *allium.Client {
	t.Helper()
	client, err := allium.Open(d.URI(), allium.ClientOptions{Tracing: tr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close(context.Background()) })
	return client
}

func find(t *testing.T, ctx context.Context, client *allium.Client) {
	t.Helper()
	cur, err := client.Database("db").Collection("coll").Find(ctx, bson.D{{Key: "x", Value: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if err := cur.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

func names(spans tracetest.SpanStubs) (list []string) {
	for _, s := range spans {
		list = append(list, s.Name)
	}
	slices.Sort(list)
	return list
}

func value(s tracetest.SpanStub, key attribute.Key) (attribute.Value, bool) {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value, true
		}
	}
	return attribute.Value{}, false
}

// Prose test 1 of the specification: the environment switches tracing on and off.
func TestEnabledByEnvironment(t *testing.T) {
	d := mongotest.Start(t)
	provider, exporter := newProvider()
	for _, test := range []struct {
		env  string
		want []string
	}{{"false", nil}, {"true", []string{"find", "find db.coll"}}} {
		t.Setenv(enabled, test.env)
		exporter.Reset()
		find(t, t.Context(), open(t, d, &allium.Tracing{Tracer: otel.NewTracer(provider)}))
		if got := names(exporter.GetSpans()); !slices.Equal(got, test.want) {
			t.Errorf("%s=%s: spans %q, want %q", enabled, test.env, got, test.want)
		}
	}
}

// Prose test 2 of the specification: the environment switches the query text on.
func TestQueryTextByEnvironment(t *testing.T) {
	d := mongotest.Start(t)
	provider, exporter := newProvider()
	t.Setenv(enabled, "true")
	for _, test := range []struct{ env, want string }{{"1024", `{"find":"coll","filter":{"x":1}}`}, {"", ""}} {
		t.Setenv(queryText, test.env)
		exporter.Reset()
		find(t, t.Context(), open(t, d, &allium.Tracing{Tracer: otel.NewTracer(provider)}))
		spans := exporter.GetSpans()
		if len(spans) != 2 {
			t.Fatalf("spans %q, want 2", names(spans))
		}
		text, ok := value(spans[0], "db.query.text") // that of the command ends first
		if got := text.AsString(); got != test.want || ok != (test.want != "") {
			t.Errorf("%s=%s: query text %q (%v), want %q", queryText, test.env, got, ok, test.want)
		}
	}
}

// TestSpans looks at what OpenTelemetry makes of the driver's spans.
func TestSpans(t *testing.T) {
	d := mongotest.Start(t, mongotest.ReplicaSet(1))
	provider, exporter := newProvider()
	client := open(t, d, &allium.Tracing{Tracer: otel.NewTracer(provider), Enabled: new(true)})
	ctx, host := provider.Tracer("test").Start(t.Context(), "host")
	var inside trace.SpanContext
	err := client.Transact(ctx, func(ctx context.Context) error {
		inside = trace.SpanContextFromContext(ctx)
		_, err := client.Database("db").Collection("coll").InsertOne(ctx, bson.D{{Key: "_id", Value: 1}})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Database("db").RunCommand(ctx, bson.D{{Key: "noSuchCommand", Value: 1}}); err == nil {
		t.Fatal("a command that does not exist succeeded")
	}
	host.End()
	spans := exporter.GetSpans()
	byName := map[string]tracetest.SpanStub{}
	for _, s := range spans {
		byName[s.Name] = s
	}
	if len(byName) != len(spans) {
		t.Fatalf("two spans have one name: %q", names(spans))
	}
	for child, parent := range map[string]string{"transaction": "host", "insert db.coll": "transaction", "insert": "insert db.coll",
		"commitTransaction admin": "transaction", "commitTransaction": "commitTransaction admin", "runCommand db": "host",
		"noSuchCommand": "runCommand db"} {
		c, p := byName[child], byName[parent]
		if !c.SpanContext.IsValid() || c.Parent.SpanID() != p.SpanContext.SpanID() {
			t.Errorf("span %q is not below %q: %q", child, parent, names(spans))
		}
		if c.SpanKind != trace.SpanKindClient {
			t.Errorf("span %q is of the kind %v", child, c.SpanKind)
		}
		if c.InstrumentationScope.Name != "allium" {
			t.Errorf("span %q is of the scope %q", child, c.InstrumentationScope.Name)
		}
		if v := c.InstrumentationScope.Version; v != tracing.DriverVersion() {
			t.Errorf("span %q is of the version %q, want what the handshake says", child, v)
		}
	}
	if len(byName) != 8 {
		t.Errorf("spans %q, want 8", names(spans))
	}
	if inside.SpanID() != byName["transaction"].SpanContext.SpanID() {
		t.Error("the current span of the function is not the transaction's")
	}
	port, _ := value(byName["insert"], "server.port")
	if port.Type() != attribute.INT64 || port.AsInt64() == 0 {
		t.Errorf("server.port is %v", port)
	}
	failed := byName["noSuchCommand"]
	if code, _ := value(failed, "db.response.status_code"); code.AsString() != "59" {
		t.Errorf("status code %q, want 59", code.AsString())
	}
	if failed.Status.Code != codes.Error || len(failed.Events) != 1 || failed.Events[0].Name != "exception" {
		t.Errorf("status %v and events %v of a command that failed", failed.Status, failed.Events)
	}
	if ok := byName["insert"]; ok.Status.Code != codes.Unset || len(ok.Events) != 0 {
		t.Errorf("status %v and events %v of a command that succeeded", ok.Status, ok.Events)
	}
}

// Spans of a client, with the text of its commands.
func ExampleNewTracer() {
	deployment, err := mongotest.Open()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer deployment.Stop()
	exporter := tracetest.NewInMemoryExporter() // a program has one that sends them somewhere
	provider := sdk.NewTracerProvider(sdk.WithSyncer(exporter))

	ctx := context.Background()
	client, err := allium.Open(deployment.URI(), allium.ClientOptions{
		Tracing: &allium.Tracing{Tracer: otel.NewTracer(provider), Enabled: new(true), QueryTextMaxLength: 1000},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close(ctx)
	if _, err := client.Database("shop").Collection("orders").CountDocuments(ctx, bson.D{{Key: "open", Value: true}}); err != nil {
		fmt.Println(err)
	}
	for _, span := range exporter.GetSpans() {
		fmt.Println(span.Name)
	}
	// Output:
	// aggregate
	// aggregate shop.orders
}
