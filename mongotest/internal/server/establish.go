package server

import (
	"math"
	"sync"
	"time"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/release"
)

// establishment limits the rate at which a node establishes connections, as the parameters
// ingressConnectionEstablishment... ask for (manual: "Configure the Ingress Connection
// Establishment Rate Limiter"): a bucket of tokens, one for each connection. Who finds none waits
// in a queue for the next; who finds the queue full is hung up on, before TLS and hello.
type establishment struct {
	mu     sync.Mutex
	tokens float64 // less than zero: promised to those who wait
	filled time.Time
	queued int

	attempted, admitted, rejected, waited, gaveUp int64
	waitedFor                                     time.Duration // of those admitted from the queue
}

const (
	rateLimiterOn    = "ingressConnectionEstablishmentRateLimiterEnabled"
	rateLimiterRate  = "ingressConnectionEstablishmentRatePerSec"
	rateLimiterBurst = "ingressConnectionEstablishmentBurstCapacitySecs"
	rateLimiterQueue = "ingressConnectionEstablishmentMaxQueueDepth"
)

// LimitsConnections reports whether the version has the limiter.
func (n *Node) LimitsConnections() bool {
	return n.cfg.Version.Has(release.Reply, "serverStatus.queues.ingressSessionEstablishment")
}

// establish lets a connection in, as soon as the limiter does. It reports false if the connection
// has to be closed.
func (n *Node) establish() bool {
	if on, ok := n.Parameter(rateLimiterOn); !ok || !on.AsBool() {
		return true
	}
	number := func(name string) float64 {
		v, _ := n.Parameter(name)
		return float(v)
	}
	rate := number(rateLimiterRate)
	e := &n.establishment
	wait, ok := e.take(time.Now(), rate, rate*number(rateLimiterBurst), int(number(rateLimiterQueue)))
	if !ok || wait == 0 {
		return ok
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-n.shutdownChan():
		ok = false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.queued--
	if !ok {
		e.gaveUp++
		return false
	}
	e.admitted++
	e.waited++
	e.waitedFor += wait
	return true
}

// take takes a token and returns how long it is until it is there. ok is false if there is none and
// the queue is full.
func (e *establishment) take(now time.Time, rate, capacity float64, queue int) (wait time.Duration, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.attempted++
	if e.filled.IsZero() {
		e.tokens = capacity
	} else {
		e.tokens += now.Sub(e.filled).Seconds() * rate
	}
	e.filled, e.tokens = now, min(e.tokens, capacity)
	switch {
	case e.tokens >= 1:
		e.tokens--
		e.admitted++
		return 0, true
	case e.queued >= queue:
		e.rejected++
		return 0, false
	}
	e.queued++
	e.tokens--
	return time.Duration(math.Ceil(-e.tokens / rate * float64(time.Second))), true
}

// restart begins with a full bucket, when the limiter is switched on.
func (e *establishment) restart() {
	e.mu.Lock()
	e.filled, e.tokens = time.Time{}, 0
	e.mu.Unlock()
}

// AppendEstablishment appends what the section connections of serverStatus says of the limiter.
func (n *Node) AppendEstablishment(dst []byte) []byte {
	if !n.LimitsConnections() {
		return dst
	}
	e := &n.establishment
	e.mu.Lock()
	defer e.mu.Unlock()
	dst = bson.AppendInt64(dst, "queuedForEstablishment", int64(e.queued))
	at, dst := bson.BeginDocumentElement(dst, "establishmentRateLimit")
	dst = bson.AppendInt64(dst, "rejected", e.rejected)
	dst = bson.AppendInt64(dst, "exempted", 0)
	dst = bson.AppendInt64(dst, "interruptedDueToClientDisconnect", 0)
	return bson.EndDocument(dst, at)
}

// AppendQueues appends the section queues of serverStatus.
func (n *Node) AppendQueues(dst []byte) []byte {
	e := &n.establishment
	e.mu.Lock()
	defer e.mu.Unlock()
	at, dst := bson.BeginDocumentElement(dst, "ingressSessionEstablishment")
	dst = bson.AppendInt64(dst, "addedToQueue", e.waited+e.gaveUp+int64(e.queued))
	dst = bson.AppendInt64(dst, "removedFromQueue", e.waited+e.gaveUp)
	dst = bson.AppendInt64(dst, "interruptedInQueue", e.gaveUp)
	dst = bson.AppendInt64(dst, "rejectedAdmissions", e.rejected)
	dst = bson.AppendInt64(dst, "exemptedAdmissions", 0)
	dst = bson.AppendInt64(dst, "successfulAdmissions", e.admitted)
	dst = bson.AppendInt64(dst, "attemptedAdmissions", e.attempted)
	if e.waited > 0 {
		dst = bson.AppendDouble(dst, "averageTimeQueuedMicros", float64(e.waitedFor.Microseconds())/float64(e.waited))
	}
	return bson.EndDocument(dst, at)
}

// checkParameter reports whether a parameter can have this value.
func checkParameter(name string, v bson.RawValue) bool {
	switch name {
	case rateLimiterRate:
		return float(v) >= 1
	case rateLimiterBurst:
		return float(v) > 0
	case rateLimiterQueue:
		return float(v) >= 0
	case sampleExpiration, CharacteristicSize, CommonValues, KeyRanges:
		return float(v) >= 1
	case MonotonicThreshold:
		return float(v) >= 0 && float(v) <= 1
	case queryStatsRate:
		return float(v) >= -1
	case queryStatsSample:
		return float(v) >= 0 && float(v) <= 1
	case queryStatsSize:
		text, _ := v.StringValue()
		_, ok := sizeOf(text)
		return ok
	}
	return true
}

// float returns a number as a double.
func float(v bson.RawValue) float64 {
	if f, ok := v.Double(); ok {
		return f
	}
	n, _ := args.NumberOf(v)
	return float64(n)
}
