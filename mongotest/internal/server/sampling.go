package server

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/srverr"
)

// Sampled queries: what configureQueryAnalyzer has a deployment keep of the queries on a
// collection, so that analyzeShardKey can tell how a shard key would spread them.

// Sampler keeps the analyzers of a deployment, and what they have sampled until it expires. The
// zero value samples nothing. Safe for concurrent use.
type Sampler struct {
	on atomic.Bool // anything is sampled

	mu        sync.Mutex
	analyzers []analyzer
	samples   []Sample // in the order in which they came
}

// analyzer says how many queries on a collection are sampled.
type analyzer struct {
	ns      string
	uuid    [16]byte
	rate    float64 // a second
	started time.Time
	// tokens are the samples that may be taken at once; each second brings as many as the rate, and
	// there are never more than that, or one.
	tokens                               float64
	filled                               time.Time
	reads, writes, readBytes, writeBytes int64
}

// Sample is a query that was sampled. It is not changed once it is kept.
type Sample struct {
	ID      bson.UUID
	NS      string
	UUID    [16]byte
	Command string
	Cmd     bson.Raw
	Expires time.Time
}

// Sampler returns the deployment's.
func (d *Data) Sampler() *Sampler {
	if d.whole != nil {
		d = d.whole
	}
	return &d.sampler
}

// OfCluster reports whether the node's data are those of one shard of a cluster, about which its
// mongoses answer.
func (n *Node) OfCluster() bool { return n.data.whole != nil }

// Configure sets how many queries on a collection are sampled each second; 0: none. It returns what
// was set before, 0 if nothing was.
func (s *Sampler) Configure(ns string, uuid [16]byte, rate float64, now time.Time) (old float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.analyzers, func(a analyzer) bool { return a.ns == ns && a.uuid == uuid })
	if i >= 0 {
		old = s.analyzers[i].rate
	}
	switch {
	case rate == 0:
		s.analyzers = slices.DeleteFunc(s.analyzers, func(a analyzer) bool { return a.ns == ns })
	case i >= 0:
		s.analyzers[i].rate = rate
	default: // one of a collection that was dropped has no use any more
		s.analyzers = slices.DeleteFunc(s.analyzers, func(a analyzer) bool { return a.ns == ns })
		s.analyzers = append(s.analyzers, analyzer{ns: ns, uuid: uuid, rate: rate, started: now})
	}
	s.on.Store(len(s.analyzers) > 0)
	return old
}

// List returns the samples of a collection, or all, that have not expired.
func (s *Sampler) List(ns string, now time.Time) (list []Sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireLocked(now)
	for _, x := range s.samples {
		if ns == "" || x.NS == ns {
			list = append(list, x)
		}
	}
	return list
}

func (s *Sampler) expireLocked(now time.Time) {
	s.samples = slices.DeleteFunc(s.samples, func(x Sample) bool { return !x.Expires.After(now) })
}

// Document returns the sample as $listSampledQueries shows it.
func (x *Sample) Document() bson.Raw {
	return bsondoc.Build(func(d *bsondoc.Builder) {
		d.B = bson.AppendBinary(d.B, "_id", bson.BinaryUUID, x.ID[:])
		d.Str("ns", x.NS)
		d.B = bson.AppendBinary(d.B, "collectionUuid", bson.BinaryUUID, x.UUID[:])
		d.Str("cmdName", x.Command).Doc("cmd", x.Cmd)
		d.B = bson.AppendDateTime(d.B, "expireAt", bson.NewDateTime(x.Expires))
	})
}

// Progress returns what $currentOp shows of the analyzers.
func (s *Sampler) Progress() (docs []bson.Raw) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.analyzers {
		docs = append(docs, bsondoc.Build(func(d *bsondoc.Builder) {
			d.Str("desc", "query analyzer").Str("ns", a.ns)
			d.B = bson.AppendBinary(d.B, "collUuid", bson.BinaryUUID, a.uuid[:])
			d.B = bsondoc.Append(d.B, "samplesPerSecond", a.rate, "startTime", bson.NewDateTime(a.started),
				"sampledReadsCount", a.reads, "sampledWritesCount", a.writes, "sampledReadsBytes", a.readBytes,
				"sampledWritesBytes", a.writeBytes)
		}))
	}
	return docs
}

// sampling is what a sampler keeps.
type sampling struct {
	analyzers []analyzer
	samples   []Sample
}

func (s *Sampler) save() sampling {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sampling{slices.Clone(s.analyzers), slices.Clone(s.samples)}
}

func (s *Sampler) restore(kept sampling) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.analyzers, s.samples = slices.Clone(kept.analyzers), slices.Clone(kept.samples)
	s.on.Store(len(s.analyzers) > 0)
}

// take takes a sample, if the collection has an analyzer which has not had enough.
func (s *Sampler) take(r *Request, ns string, name string, cmd func() bson.Raw) {
	now := r.Node.data.Clock.Now()
	c := r.Node.Store().Latest().Coll(ns)
	if c == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.analyzers, func(a analyzer) bool { return a.ns == ns && a.uuid == c.UUID })
	if i < 0 {
		return // or the collection is another one by now, whose queries nobody wants
	}
	a := &s.analyzers[i]
	most := max(a.rate, 1)
	if a.filled.IsZero() {
		a.tokens = most
	} else {
		a.tokens = min(most, a.tokens+a.rate*r.start.Sub(a.filled).Seconds())
	}
	a.filled = r.start
	if a.tokens < 1 {
		return
	}
	a.tokens--
	doc := cmd()
	switch name {
	case "update", "delete", "findAndModify":
		a.writes, a.writeBytes = a.writes+1, a.writeBytes+int64(len(doc))
	default:
		a.reads, a.readBytes = a.reads+1, a.readBytes+int64(len(doc))
	}
	s.expireLocked(now)
	keep := time.Duration(r.Node.IntParameter(sampleExpiration)) * time.Second
	s.samples = append(s.samples, Sample{ID: bson.NewUUID(), NS: ns, UUID: c.UUID, Command: name, Cmd: doc,
		Expires: now.Add(keep)})
}

// The parameters of sampled queries and of the analysis of shard keys.
const (
	sampleExpiration   = "queryAnalysisSampleExpirationSecs"
	CharacteristicSize = "analyzeShardKeyCharacteristicsDefaultSampleSize"
	CommonValues       = "analyzeShardKeyNumMostCommonValues"
	KeyRanges          = "analyzeShardKeyNumRanges"
	MonotonicThreshold = "analyzeShardKeyMonotonicityCorrelationCoefficientThreshold"
)

// sample offers a command that has run to the analyzer of its collection. Those with several
// statements offer them one by one: see sampleStatement.
func (r *Request) sample(err error) {
	s := r.Node.data.Sampler()
	if !s.on.Load() || err != nil || r.Cmd == nil || r.within != nil {
		return
	}
	name := r.Cmd.Name
	switch name {
	case "find", "count", "distinct", "aggregate":
		if r.Arg().Type != bson.TypeString || r.ChangeStream || r.Body.Lookup("explain").AsBool() {
			return
		}
		s.take(r, r.Namespace(), name, r.sampledRead)
	case "findAndModify":
		s.take(r, r.Namespace(), name, func() bson.Raw { return r.sampledCommand("", nil) })
	}
}

// sampleStatement offers one statement of an update or a delete.
func (r *Request) sampleStatement(statement func() bson.Raw, err error) {
	s := r.Node.data.Sampler()
	if !s.on.Load() || err != nil || r.within != nil {
		return
	}
	list := map[string]string{"update": "updates", "delete": "deletes"}[r.Cmd.Name]
	if list == "" {
		return
	}
	s.take(r, r.Namespace(), r.Cmd.Name, func() bson.Raw { return r.sampledCommand(list, statement()) })
}

// sampledRead returns what is kept of a read.
func (r *Request) sampledRead() bson.Raw {
	filter := r.Body.Lookup("filter")
	switch {
	case r.Cmd.Name == "aggregate":
		filter = r.Body.Lookup("pipeline", "0", "$match")
	case filter.IsZero():
		filter = r.Body.Lookup("query")
	}
	return bsondoc.Build(func(d *bsondoc.Builder) {
		doc, _ := filter.Document()
		d.Doc("filter", bsondoc.OrEmpty(doc))
		for _, name := range []string{"collation", "let"} {
			if doc, ok := r.Body.Lookup(name).Document(); ok {
				d.Doc(name, doc)
			}
		}
	})
}

// sampledCommand returns what is kept of a write: the command, with one of its statements only.
func (r *Request) sampledCommand(list string, statement bson.Raw) bson.Raw {
	return bsondoc.Build(func(d *bsondoc.Builder) {
		first := true
		for k, v := range r.Body.All() {
			switch {
			case k == list:
			case first, k == "let", list == "" && !r.Generic(k), k == "$db":
				d.B = bson.AppendRawValue(d.B, k, v)
			}
			first = false
		}
		if list != "" {
			d.B = bsondoc.AppendDocuments(d.B, list, [][]byte{statement})
		}
	})
}

// RefuseAnalysis is the error of a command or stage about sampled queries on a node that has none:
// a standalone, or a shard, whose mongoses know.
func RefuseAnalysis(r *Request, what string) error {
	if r.Node.OfCluster() {
		return srverr.New(srverr.IllegalOperation, "%s is not supported on a shardsvr mongod", what)
	}
	return srverr.New(srverr.IllegalOperation, "%s is not supported on a standalone mongod", what)
}
