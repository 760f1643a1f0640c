package campaign

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Topology is what kind of deployment a history runs against.
type Topology string

// The topologies.
const (
	ReplSet Topology = "replset" // three members
	Sharded Topology = "sharded" // two shards of three members behind three mongoses
	LB      Topology = "lb"      // two mongoses behind a load balancer, and a shard of three members
)

// Topologies lists them all.
var Topologies = []Topology{ReplSet, Sharded, LB}

// Plan is everything that is decided before a history begins.
type Plan struct {
	Seed     uint64
	Topology Topology
	Length   time.Duration // of the part with faults
	Think    time.Duration // mean pause between an actor's operations
	Real     bool          // in real time, on TCP
	Auth     bool
	TLS      bool
	Election time.Duration // how long a replica set is without a primary
	Lag      time.Duration // of secondaries
	Clients  []ClientPlan
	Actors   []ActorPlan
	Steps    []Step
}

// rotates reports whether clients have certificates in files, which are replaced: the key services
// are on loopback, where simulated time does not reach.
func (p *Plan) rotates() bool { return p.Real && p.TLS }

// ClientPlan is the options of a client.
type ClientPlan struct {
	MaxPool   int
	Timeout   time.Duration // 0: none
	Heartbeat time.Duration
	Compress  string
	Polling   bool
	// Asks says that the client has its password from ClientOptions.Credentials, in histories with
	// authentication.
	Asks bool
}

// ActorPlan is one goroutine's work.
type ActorPlan struct {
	ID     int
	Kind   string
	Client int
	Seed   uint64
}

// String is how a shrunk plan is printed.
func (a ActorPlan) String() string { return fmt.Sprintf("%s %d on client %d", a.Kind, a.ID, a.Client) }

// Step is a move of the adversary: it does something, and undoes it after For.
type Step struct {
	At     time.Duration
	For    time.Duration
	Kind   string
	Node   int // which node: that many after the primary
	Client int
	N      int // a number of bytes or commands
	Code   int32
	Labels []string
	Cmds   []string
	Place  string // of code of the program's that fails
	Exits  bool   // by runtime.Goexit
}

// String is how a shrunk plan is printed.
func (s Step) String() string {
	text := fmt.Sprintf("at %v for %v: %s", s.At, s.For, s.Kind)
	switch s.Kind {
	case "error", "writeConcernError", "overload":
		text += fmt.Sprintf(" %d on %v, %d times", s.Code, s.Cmds, s.N)
	case "closeClient":
		text += fmt.Sprintf(" %d", s.Client)
	case "cut", "drop", "garbage":
		text += fmt.Sprintf(" node +%d, %d bytes", s.Node, s.N)
	case "failure":
		text += fmt.Sprintf(" of %s of client %d, %d times, Goexit %v", s.Place, s.Client, s.N, s.Exits)
	case "certificate":
		text += fmt.Sprintf(" of kind %d", s.certificate())
	case "renew", "cutOff":
		text += fmt.Sprintf(" of certificates, sides %d, files broken from way %d on", s.N, s.Node)
	case "slowCommand", "closeOnCommand":
		text += fmt.Sprintf(" %v, %d times", s.Cmds, s.N)
	default:
		text += fmt.Sprintf(" node +%d", s.Node)
	}
	return text
}

// stream returns the random numbers of one part of a history.
func stream(seed uint64, part uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, part)) }

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// about returns a time around mean, exponentially distributed and bounded.
func about(r *rand.Rand, mean time.Duration) time.Duration {
	return min(time.Duration(r.ExpFloat64()*float64(mean)), 8*mean) + time.Millisecond
}

// paces are how dense a history is. Long ones let time limits pass: of sessions, cursors,
// transactions and idle connections; dense ones find what needs two things at once.
var paces = []struct{ length, think, gap time.Duration }{
	{5 * time.Minute, 500 * time.Millisecond, 5 * time.Second},
	{30 * time.Minute, 5 * time.Second, 30 * time.Second},
	{4 * time.Hour, time.Minute, 4 * time.Minute},
	{12 * time.Hour, 4 * time.Minute, 10 * time.Minute},
}

// NewPlan makes the plan of a seed. length is that of a history in real time; 0: a simulated one,
// whose length the seed chooses.
func NewPlan(seed uint64, topology Topology, length time.Duration) *Plan {
	return newPlan(seed, topology, length, len(paces))
}

// NewDensePlan makes a simulated plan of the densest pace.
func NewDensePlan(seed uint64, topology Topology) *Plan { return newPlan(seed, topology, 0, 1) }

func newPlan(seed uint64, topology Topology, length time.Duration, choice int) *Plan {
	r := stream(seed, 1)
	pace := pick(r, paces[:choice])
	p := &Plan{Seed: seed, Topology: topology, Length: pace.length, Think: pace.think, Real: length > 0}
	gap := pace.gap
	p.Auth = r.IntN(6) == 0
	p.Election = pick(r, []time.Duration{0, time.Second, 10 * time.Second})
	p.Lag = pick(r, []time.Duration{0, 10 * time.Millisecond, 500 * time.Millisecond})
	if p.Real {
		p.Length, p.Think, gap = length, 20*time.Millisecond, 500*time.Millisecond
		p.Election, p.Lag = p.Election/20, min(p.Lag, 20*time.Millisecond)
	}
	for i := range 3 {
		c := ClientPlan{
			MaxPool: pick(r, []int{2, 5, 100}), Timeout: pick(r, []time.Duration{0, 0, 20 * time.Second}),
			Heartbeat: pick(r, []time.Duration{10 * time.Second, 2 * time.Second, 500 * time.Millisecond}),
			Compress:  pick(r, []string{"", "", "zlib", "snappy", "zstd"}), Polling: r.IntN(4) == 0,
			Asks: p.Auth && i > 0,
		}
		if p.Length > time.Hour {
			c.Heartbeat = 30 * time.Second
		}
		switch {
		case p.Real:
			c.Heartbeat = 500 * time.Millisecond
		case c.Compress == "zstd":
			// Its encoders are shared by the whole process, and a bubble cannot use channels from
			// outside.
			c.Compress = "snappy"
		}
		p.Clients = append(p.Clients, c)
	}
	for kind, n := range crew {
		for range n {
			p.Actors = append(p.Actors, ActorPlan{Kind: kind})
		}
	}
	slices.SortFunc(p.Actors, func(a, b ActorPlan) int { // the order of a map is no part of the seed
		return slices.Index(kinds, a.Kind) - slices.Index(kinds, b.Kind)
	})
	for i := range p.Actors {
		p.Actors[i].ID, p.Actors[i].Client, p.Actors[i].Seed = i, r.IntN(len(p.Clients)), r.Uint64()
	}
	// From a stream of its own: all else of a seed stays what it was.
	p.TLS = stream(seed, 3).IntN(4) < map[bool]int{false: 1, true: 3}[p.Real]
	if p.rotates() {
		kr := stream(seed, 4)
		for range 2 {
			p.Actors = append(p.Actors, ActorPlan{ID: len(p.Actors), Kind: "keys", Seed: kr.Uint64()})
		}
	}
	tr := stream(seed, 5)
	for range tenants {
		p.Actors = append(p.Actors, ActorPlan{ID: len(p.Actors), Kind: "tenant", Client: tr.IntN(len(p.Clients)),
			Seed: tr.Uint64()})
	}
	pr := stream(seed, 6)
	for _, kind := range []string{"saver", "saver", "worker", "worker", "worker"} {
		p.Actors = append(p.Actors,
			ActorPlan{ID: len(p.Actors), Kind: kind, Client: pr.IntN(len(p.Clients)), Seed: pr.Uint64()})
	}
	cr := stream(seed, 7)
	for _, kind := range []string{"producer", "consumer", "consumer", "consumer", "migrator", "migrator"} {
		p.Actors = append(p.Actors,
			ActorPlan{ID: len(p.Actors), Kind: kind, Client: cr.IntN(len(p.Clients)), Seed: cr.Uint64()})
	}
	sr := stream(seed, 2)
	for at := about(sr, gap); at < p.Length; at += about(sr, gap) {
		s := drawStep(sr, p)
		s.At = at
		p.Steps = append(p.Steps, s)
	}
	return p
}

// crew is how many actors of each kind a history has.
var crew = map[string]int{
	"lister": 3, "bulk": 2, "weak": 1, "counter": 2, "transaction": 2, "bank": 2, "auditor": 1, "inserter": 2,
	"follower": 2, "files": 1, "scanner": 2, "causal": 2, "failing": 1, "ending": 3, "careless": 1, "many": 2, "odd": 1,
}

// kinds lists the actors' kinds in a fixed order.
var kinds = []string{"lister", "bulk", "weak", "counter", "transaction", "bank", "auditor", "inserter", "follower",
	"files", "scanner", "causal",
	"failing", "ending", "careless", "many", "odd", "tenant", "saver", "worker", "producer", "consumer", "migrator"}
