package debug

import (
	"time"

	"allium"
	"allium/internal/failure"
	"allium/stats"
)

// report is what the page shows, and what JSON holds. Times that last are in milliseconds.
type report struct {
	Time     time.Time `json:"time"`
	Topology topology  `json:"topology"`
	Pools    []pool    `json:"pools"`
	Sessions sessions  `json:"sessions"`

	Operations       int         `json:"operationsInFlight"`
	OldestOperations []operation `json:"oldestOperations"`
	Cursors          int         `json:"openCursors"`
	OldestCursors    []cursor    `json:"oldestCursors"`

	SlowThresholdMS      float64 `json:"slowThresholdMS"`
	SlowOperations       int64   `json:"slowOperations"`
	RecentSlowOperations []slow  `json:"recentSlowOperations"`
	RecentEvents         []event `json:"recentEvents"`
	DroppedEvents        int64   `json:"droppedEvents"`

	// Sums over all pools.
	InUse   int `json:"-"`
	Open    int `json:"-"`
	Waiting int `json:"-"`
}

type topology struct {
	Kind    string   `json:"kind"`
	SetName string   `json:"setName,omitempty"`
	Problem string   `json:"problem,omitempty"`
	Servers []server `json:"servers"`
}

type server struct {
	Addr       string            `json:"addr"`
	Kind       string            `json:"kind"`
	RTTMS      float64           `json:"averageRTTMS"`
	MinRTTMS   float64           `json:"minRTTMS"`
	LastUpdate time.Time         `json:"lastUpdate,omitzero"`
	Tags       map[string]string `json:"tags,omitempty"`
	Error      string            `json:"error,omitempty"`
}

type pool struct {
	Addr       string  `json:"addr"`
	State      string  `json:"state"`
	PausedBy   string  `json:"pausedBy,omitempty"`
	Generation uint64  `json:"generation"`
	MaxOpen    int     `json:"maxOpen"`
	MinOpen    int     `json:"minOpen"`
	Open       int     `json:"open"`
	InUse      int     `json:"inUse"`
	Idle       int     `json:"idle"`
	Connecting int     `json:"connecting"`
	Draining   int     `json:"draining"`
	Cursors    int     `json:"inUseByCursors"`
	Txns       int     `json:"inUseByTransactions"`
	Waiting    int     `json:"waiting"`
	WaitCount  int64   `json:"waitCount"`
	WaitMS     float64 `json:"waitDurationMS"`
	GaveUp     int64   `json:"waitTimeouts"`
	Created    int64   `json:"created"`
	Closed     closed  `json:"closed"`
	// Waiters are the oldest operations that wait for a connection.
	Waiters []operation `json:"waiters"`
}

type closed struct {
	Stale      int64 `json:"stale"`
	Idle       int64 `json:"idle"`
	Error      int64 `json:"error"`
	PoolClosed int64 `json:"poolClosed"`
}

type sessions struct {
	InUse  int `json:"inUse"`
	Pooled int `json:"pooled"`
}

type operation struct {
	Command   string    `json:"command"`
	Namespace string    `json:"namespace"`
	Phase     string    `json:"phase"`
	Addr      string    `json:"addr,omitempty"`
	Started   time.Time `json:"started"`
	ForMS     float64   `json:"durationMS"`
	Attempts  int       `json:"failedAttempts"`
}

type cursor struct {
	ID        int64     `json:"id,string"` // more digits than a number of JavaScript has
	Namespace string    `json:"namespace"`
	Addr      string    `json:"addr"`
	Opened    time.Time `json:"opened"`
	ForMS     float64   `json:"openMS"`
}

type slow struct {
	Command      string    `json:"command"`
	Namespace    string    `json:"namespace"`
	Addr         string    `json:"addr,omitempty"`
	Started      time.Time `json:"started"`
	DurationMS   float64   `json:"durationMS"`
	SelectionMS  float64   `json:"selectionMS"`
	CheckoutMS   float64   `json:"checkoutMS"`
	EncryptionMS float64   `json:"encryptionMS"`
	BackoffMS    float64   `json:"backoffMS"`
	Attempts     int       `json:"attempts"`
	Shape        string    `json:"shape,omitempty"`
	Failure      string    `json:"failure,omitempty"`
}

type event struct {
	Time  time.Time `json:"time"`
	Addr  string    `json:"addr,omitempty"`
	Text  string    `json:"text"`
	Cause string    `json:"cause,omitempty"`
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// newReport asks a client. Its lists are as long as those of stats.Client at most.
func newReport(client *allium.Client, now time.Time) *report {
	s, t := client.Stats(), client.Topology()
	r := &report{
		Time: now, Topology: topology{Kind: t.Kind.String(), SetName: t.SetName, Servers: []server{}},
		Sessions: sessions(s.Sessions), Operations: s.Operations, Cursors: s.Cursors,
		SlowThresholdMS: milliseconds(s.SlowThreshold), SlowOperations: s.SlowOperations,
		DroppedEvents: s.DroppedEvents,
		Pools:         []pool{}, OldestOperations: []operation{}, OldestCursors: []cursor{},
		RecentSlowOperations: []slow{},
		RecentEvents:         []event{},
	}
	if t.CompatibilityErr != nil {
		r.Topology.Problem = t.CompatibilityErr.Error() // the driver's own, about versions
	}
	for _, d := range t.Servers {
		r.Topology.Servers = append(r.Topology.Servers,
			server{Addr: d.Addr, Kind: d.Kind.String(), RTTMS: milliseconds(d.AverageRTT),
				MinRTTMS: milliseconds(d.MinRTT), LastUpdate: d.LastUpdate, Tags: d.Tags,
				Error: failure.Outline(d.LastError)})
	}
	for _, o := range s.OldestOperations {
		r.OldestOperations = append(r.OldestOperations,
			operation{Command: o.Command, Namespace: o.Namespace, Phase: string(o.Phase), Addr: o.Addr,
				Started: o.Started, ForMS: milliseconds(now.Sub(o.Started)), Attempts: o.Attempts})
	}
	for i := range s.Pools {
		r.addPool(&s.Pools[i])
	}
	for _, c := range s.OldestCursors {
		r.OldestCursors = append(r.OldestCursors, cursor{ID: c.ID, Namespace: c.Namespace, Addr: c.Addr,
			Opened: c.Opened, ForMS: milliseconds(now.Sub(c.Opened))})
	}
	for _, o := range s.RecentSlowOperations {
		r.RecentSlowOperations = append(r.RecentSlowOperations,
			slow{Command: o.Command, Namespace: o.Namespace, Addr: o.Addr, Started: o.Started,
				DurationMS: milliseconds(o.Duration), SelectionMS: milliseconds(o.Selection),
				CheckoutMS:   milliseconds(o.Checkout),
				EncryptionMS: milliseconds(o.Encryption), BackoffMS: milliseconds(o.Backoff), Attempts: o.Attempts,
				Shape: o.Shape, Failure: o.Failure})
	}
	for _, e := range s.RecentEvents {
		r.RecentEvents = append(r.RecentEvents, event(e))
	}
	return r
}

func (r *report) addPool(p *stats.Pool) {
	r.InUse += p.InUse
	r.Open += p.Open
	r.Waiting += p.Waiting
	out := pool{Addr: p.Addr, State: p.State, PausedBy: p.PausedBy, Generation: p.Generation, MaxOpen: p.MaxOpen,
		MinOpen: p.MinOpen, Open: p.Open,
		InUse: p.InUse, Idle: p.Idle, Connecting: p.Connecting, Draining: p.Draining, Cursors: p.InUseByCursors,
		Txns:    p.InUseByTransactions,
		Waiting: p.Waiting, WaitCount: p.WaitCount, WaitMS: milliseconds(p.WaitDuration), GaveUp: p.WaitTimeouts,
		Created: p.Created,
		Closed:  closed(p.Closed), Waiters: []operation{}}
	for _, o := range r.OldestOperations {
		if p.Waiting > 0 && o.Phase == string(stats.PhaseCheckout) && o.Addr == p.Addr && len(out.Waiters) < p.Waiting {
			out.Waiters = append(out.Waiters, o)
		}
	}
	r.Pools = append(r.Pools, out)
}
