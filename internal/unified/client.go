package unified

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"allium"
	"allium/auth"
	"allium/bson"
	"allium/event"
	"allium/internal/leaks"
	"allium/internal/spantest"
)

// clientEntity is a client with the events and the log messages that it has published.
type clientEntity struct {
	*allium.Client
	observed  map[string]bool
	ignored   map[string]bool // commands whose events are left out
	sensitive bool            // events of sensitive commands count too
	levels    logLevels
	closed    bool
	spans     spantest.Source // nil unless the client observes tracing messages

	mu         sync.Mutex
	changed    chan struct{} // closed and replaced at each event
	off        bool          // nothing is recorded
	events     []observedEvent
	logs       []observedLog
	leaked     string // the first planted secret that an event or a span held
	checkedOut int
	ready      map[string]int // connections by server
	hidden     map[int64]bool // ids of requests whose events are left out
}

func init() { registerEntity("client", createClient) }

func createClient(ctx context.Context, r *runner, a *arguments) (any, error) {
	c := &clientEntity{observed: map[string]bool{}, ignored: map[string]bool{"configureFailPoint": true},
		changed: make(chan struct{}),
		ready:   map[string]int{}, hidden: map[int64]bool{}}
	for _, name := range a.strings("observeEvents") {
		c.observed[name] = true
	}
	for _, name := range a.strings("ignoreCommandMonitoringEvents") {
		c.ignored[name] = true
	}
	c.sensitive = a.is("observeSensitiveCommands")
	opts := r.deployment.options()
	opts.CommandMonitor, opts.PoolMonitor, opts.ServerMonitor = c.commandMonitor(), c.poolMonitor(), c.serverMonitor()
	if d := a.document("observeLogMessages"); d != nil {
		if err := c.observeLogs(d, &opts); err != nil {
			return nil, err
		}
	}
	if d := a.document("observeTracingMessages"); d != nil {
		sub := &arguments{doc: d}
		c.observeTracing(r.deployment, sub, &opts)
		a.adopt(sub)
	}
	if d := a.document("autoEncryptOpts"); d != nil {
		var err error
		if opts.Encryption, err = r.automatic(d); err != nil {
			return nil, err
		}
	}
	if api := a.document("serverApi"); api != nil {
		sub := &arguments{doc: api}
		opts.ServerAPI = &allium.ServerAPI{Version: allium.ServerAPIVersion(sub.string("version")),
			Strict: sub.bool("strict"), DeprecationErrors: sub.bool("deprecationErrors")}
		a.adopt(sub)
	}
	seeds := r.deployment.seeds
	switch b := a.bool("useMultipleMongoses"); {
	case b != nil && !*b, b == nil &&
		(r.deployment.Topology == "sharded" || slices.Contains(ofOneMongos, r.file.Description)):
		// A test that does not say must do with any number, and with one its fail points are on the
		// server that it uses.
		seeds = r.deployment.lone
	case b != nil && r.deployment.Topology == "sharded" && !strings.Contains(seeds.hosts, ","):
		return nil, errors.New("useMultipleMongoses: the deployment has only one mongos")
	}
	options, err := uriOptions(a.document("uriOptions"))
	if err != nil {
		return nil, err
	}
	await := a.millis("awaitMinPoolSizeMS")
	least := minPoolSize(options)
	if least == 0 {
		await = 0
	}
	c.off = await > 0
	if strings.EqualFold(options.Get("authMechanism"), oidc) {
		seeds = seeds.withOIDC(options, &opts, r.deployment.access)
	}
	if c.Client, err = allium.Open(seeds.uri(options), opts); err != nil {
		return nil, err
	}
	r.clients = append(r.clients, c)
	if await > 0 {
		if err := c.awaitPools(ctx, least, await); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// declined are options that the driver must not have.
var declined = map[string]string{
	"waitQueueSize":     "Connection Monitoring and Pooling forbids new drivers the option waitQueueSize",
	"waitQueueMultiple": "Connection Monitoring and Pooling forbids new drivers the option waitQueueMultiple",
}

// skipped is an error that says why a test is not run.
type skipped struct{ error }

// What the driver or a server does not have.
var (
	noAppName = skipped{errors.New(
		"needs server 4.4.7: older ones apply no fail point of an application to its first hello")}
)

// uriOptions reads the options of a connection string.
func uriOptions(doc bson.Raw) (url.Values, error) {
	query := url.Values{}
	for key, v := range doc.All() {
		key = strings.Clone(key)
		if why, ok := declined[key]; ok {
			return nil, skipped{errors.New(why)}
		}
		if d, isDoc := v.Document(); isDoc && key == "authMechanismProperties" && isPlaceholders(d) {
			continue // withOIDC knows them
		}
		values, err := uriOption(key, v)
		if err != nil {
			return nil, fmt.Errorf("option %s: %w", key, err)
		}
		query[key] = values
	}
	return query, nil
}

// isPlaceholders reports whether a document is a placeholder or has nothing but placeholders.
func isPlaceholders(d bson.Raw) bool {
	for key, v := range d.All() {
		sub, _ := v.Document()
		if key != placeholder && sub.Lookup(placeholder).IsZero() {
			return false
		}
	}
	return !d.IsEmpty()
}

const oidc = "MONGODB-OIDC"

// withOIDC returns the seeds of a client that authenticates with MONGODB-OIDC: with access, or if
// that is "" with the token in the file that $OIDC_TOKEN_FILE names.
func (s seeds) withOIDC(options url.Values, opts *allium.ClientOptions, access string) seeds {
	s.user, s.options = "", maps.Clone(s.options)
	maps.DeleteFunc(s.options, func(key string, _ []string) bool {
		return strings.HasPrefix(strings.ToLower(key), "auth")
	})
	if access == "" {
		options.Set("authMechanismProperties", "ENVIRONMENT:test")
		return s
	}
	opts.OIDC = &auth.OIDC{Callback: func(context.Context, auth.OIDCParams) (auth.OIDCCredential, error) {
		return auth.OIDCCredential{AccessToken: access}, nil
	}}
	return s
}

// uriOption writes the value of an option as connection strings have it. Only tag sets are several
// values.
func uriOption(name string, v bson.RawValue) ([]string, error) {
	switch v.Type {
	case bson.TypeArray:
		var all []string
		for el := range bson.Raw(v.Value).Values() {
			s, ok := el.StringValue()
			if !ok {
				return nil, fmt.Errorf("%v is not a string", el)
			}
			all = append(all, s)
		}
		if name != "readPreferenceTags" {
			all = []string{strings.Join(all, ",")}
		}
		return all, nil
	case bson.TypeEmbeddedDocument:
		if op, _, ok := operator(v); ok && op == placeholder {
			value, err := replacement(name)
			return []string{value}, err
		}
		var pairs []string
		for key, el := range bson.Raw(v.Value).All() {
			value, err := uriOption(name+"_"+key, el)
			if err != nil {
				return nil, err
			}
			pairs = append(pairs, key+":"+strings.Join(value, ","))
		}
		return []string{strings.Join(pairs, ",")}, nil
	case bson.TypeString:
		s, _ := v.StringValue()
		return []string{s}, nil
	}
	return []string{v.String()}, nil
}

// replacement returns what the environment has for a placeholder: the variable
// $ALLIUM_TEST_authMechanismProperties_ENVIRONMENT for the field ENVIRONMENT of the option
// authMechanismProperties.
func replacement(name string) (string, error) {
	value, ok := os.LookupEnv("ALLIUM_TEST_" + name)
	if !ok {
		return "", fmt.Errorf("there is nothing to replace the placeholder with: set ALLIUM_TEST_%s", name)
	}
	return value, nil
}

// minPoolSize returns the option of this name, 0 if it is not there.
func minPoolSize(options url.Values) (n int) {
	for key := range options {
		if strings.EqualFold(key, "minPoolSize") {
			n, _ = strconv.Atoi(options.Get(key)) // what is no number the driver warns of
		}
	}
	return n
}

// awaitPools waits until every pool has as many connections as minPoolSize says, and records events
// from then on.
func (c *clientEntity) awaitPools(ctx context.Context, least int, timeout time.Duration) error {
	full := func() bool {
		servers := c.Topology().Servers
		bearing := 0
		for _, s := range servers {
			if s.Kind == event.UnknownServer {
				return false // it may turn out to bear data
			}
			if s.DataBearing() {
				bearing++
				if c.ready[s.Addr] < least {
					return false
				}
			}
		}
		return bearing > 0
	}
	if err := c.await(ctx, timeout, full); err != nil {
		return fmt.Errorf("pools have fewer than minPoolSize connections: %w", err)
	}
	c.mu.Lock()
	c.off = false
	c.mu.Unlock()
	return nil
}

var errTooLate = errors.New("it did not happen in time")

// await waits until done, which is called under c.mu after each event.
func (c *clientEntity) await(ctx context.Context, timeout time.Duration, done func() bool) error {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		c.mu.Lock()
		ok, changed := done(), c.changed
		c.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-timer.C:
			return errTooLate
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// change runs f under c.mu, and wakes those who wait.
func (c *clientEntity) change(f func()) {
	c.mu.Lock()
	f()
	close(c.changed)
	c.changed = make(chan struct{})
	c.mu.Unlock()
}

// stopRecording keeps what happens after the test out of its events.
func (c *clientEntity) stopRecording() {
	c.mu.Lock()
	c.off = true
	c.mu.Unlock()
	if c.spans != nil {
		c.spans.Stop()
	}
}

// search looks for planted secrets in what an event says, whether a test asks for it or not.
func (c *clientEntity) search(where string, value any) {
	text, ok := value.(bson.Raw)
	if !ok {
		text = []byte(fmt.Sprint(value))
	}
	if name := leaks.Find(string(text)); name != "" {
		c.mu.Lock()
		c.leaked = name + " is in " + where
		c.mu.Unlock()
	}
}

func (c *clientEntity) record(e observedEvent) {
	c.search(e.name, e.fields)
	c.change(func() {
		if c.observed[e.name] && !c.off {
			c.events = append(c.events, e)
		}
	})
}

// command records an event of a command. fields are those that only this kind of event has;
// redacted says that its document was taken out, which tells whether a hello is a sensitive
// command.
func (c *clientEntity) command(name string, info *event.CommandInfo, redacted bool, fields ...bson.E) {
	for _, f := range fields {
		c.search(name+" of "+info.CommandName, f.Value)
	}
	c.mu.Lock()
	if name == started {
		hidden := c.ignored[info.CommandName] ||
			!c.sensitive && (sensitive[strings.ToLower(info.CommandName)] || redacted)
		if hidden {
			c.hidden[info.RequestID] = true
		}
	}
	hidden := c.hidden[info.RequestID]
	if name != started {
		delete(c.hidden, info.RequestID)
	}
	c.mu.Unlock()
	if hidden {
		return
	}
	all := append(bson.D{{Key: "commandName", Value: info.CommandName},
		{Key: "databaseName", Value: info.DatabaseName}}, fields...)
	c.record(newEvent(name, all, &marks{service: info.ServiceID, server: info.ServerConnectionID}))
}

const started = "commandStartedEvent"

// sensitive are the commands whose events are left out unless a test asks for them; those of hello
// are if they were redacted.
var sensitive = map[string]bool{"authenticate": true, "saslstart": true, "saslcontinue": true, "getnonce": true,
	"createuser": true,
	"updateuser": true, "copydbgetnonce": true, "copydbsaslstart": true, "copydb": true}

const emptyDocument = 5 // its length

func (c *clientEntity) commandMonitor() *event.CommandMonitor {
	return &event.CommandMonitor{
		Started: func(_ context.Context, e *event.CommandStarted) {
			c.command(started, &e.CommandInfo, len(e.Command) == emptyDocument,
				bson.E{Key: "command", Value: e.Command})
		},
		Succeeded: func(_ context.Context, e *event.CommandSucceeded) {
			c.command("commandSucceededEvent", &e.CommandInfo, len(e.Reply) == emptyDocument,
				bson.E{Key: "reply", Value: e.Reply})
		},
		Failed: func(_ context.Context, e *event.CommandFailed) {
			c.command("commandFailedEvent", &e.CommandInfo, false)
		},
	}
}

func (c *clientEntity) poolMonitor() *event.PoolMonitor {
	plain := func(name string) { c.record(newEvent(name, nil, nil)) }
	count := func(n *int, by int) { c.change(func() { *n += by }) }
	ready := func(addr string, by int) { c.change(func() { c.ready[addr] += by }) }
	return &event.PoolMonitor{
		PoolCreated: func(*event.PoolCreated) { plain("poolCreatedEvent") },
		PoolReady:   func(*event.PoolReady) { plain("poolReadyEvent") },
		PoolCleared: func(e *event.PoolCleared) {
			c.record(newEvent("poolClearedEvent", bson.D{{Key: "interruptInUseConnections",
				Value: e.InterruptInUseConnections}}, &marks{service: e.ServiceID}))
		},
		PoolClosed:        func(*event.PoolClosed) { plain("poolClosedEvent") },
		ConnectionCreated: func(*event.ConnectionCreated) { plain("connectionCreatedEvent") },
		ConnectionReady: func(e *event.ConnectionReady) {
			ready(e.Addr, 1)
			plain("connectionReadyEvent")
		},
		ConnectionClosed: func(e *event.ConnectionClosed) {
			c.record(newEvent("connectionClosedEvent", bson.D{{Key: "reason", Value: e.Reason}}, nil))
		},
		ConnectionCheckOutStarted: func(*event.ConnectionCheckOutStarted) { plain("connectionCheckOutStartedEvent") },
		ConnectionCheckOutFailed: func(e *event.ConnectionCheckOutFailed) {
			c.record(newEvent("connectionCheckOutFailedEvent", bson.D{{Key: "reason", Value: e.Reason}}, nil))
		},
		ConnectionCheckedOut: func(*event.ConnectionCheckedOut) {
			count(&c.checkedOut, 1)
			plain("connectionCheckedOutEvent")
		},
		ConnectionCheckedIn: func(*event.ConnectionCheckedIn) {
			count(&c.checkedOut, -1)
			plain("connectionCheckedInEvent")
		},
	}
}

func (c *clientEntity) serverMonitor() *event.ServerMonitor {
	description := func(kind fmt.Stringer) bson.D { return bson.D{{Key: "type", Value: kind.String()}} }
	heartbeat := func(name string, awaited bool) {
		c.record(newEvent(name, bson.D{{Key: "awaited", Value: awaited}}, nil))
	}
	return &event.ServerMonitor{
		TopologyOpening: func(*event.TopologyOpening) { c.record(newEvent("topologyOpeningEvent", nil, nil)) },
		TopologyClosed:  func(*event.TopologyClosed) { c.record(newEvent("topologyClosedEvent", nil, nil)) },
		TopologyDescriptionChanged: func(e *event.TopologyDescriptionChanged) {
			c.record(newEvent("topologyDescriptionChangedEvent",
				bson.D{{Key: "previousDescription", Value: description(e.PreviousDescription.Kind)},
					{Key: "newDescription", Value: description(e.NewDescription.Kind)}}, nil))
		},
		ServerDescriptionChanged: func(e *event.ServerDescriptionChanged) {
			c.record(newEvent("serverDescriptionChangedEvent",
				bson.D{{Key: "previousDescription", Value: description(e.PreviousDescription.Kind)},
					{Key: "newDescription", Value: description(e.NewDescription.Kind)}}, nil))
		},
		ServerHeartbeatStarted: func(e *event.ServerHeartbeatStarted) {
			heartbeat("serverHeartbeatStartedEvent", e.Awaited)
		},
		ServerHeartbeatSucceeded: func(e *event.ServerHeartbeatSucceeded) {
			heartbeat("serverHeartbeatSucceededEvent", e.Awaited)
		},
		ServerHeartbeatFailed: func(e *event.ServerHeartbeatFailed) {
			heartbeat("serverHeartbeatFailedEvent", e.Awaited)
		},
	}
}
