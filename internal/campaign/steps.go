package campaign

import (
	"math/rand/v2"
	"slices"
	"time"
)

// The commands that errors are put on, by what they do.
var (
	writes  = []string{"insert", "update", "delete", "findAndModify", "bulkWrite"}
	reads   = []string{"find", "aggregate", "getMore", "distinct", "count"}
	endings = []string{"commitTransaction", "abortTransaction"}
	every   = slices.Concat(writes, reads, endings)
)

// stateErrors are the errors that the specifications list as retryable or as a change of state.
// The command has not run, whatever it was.
var stateErrors = []int32{6, 7, 89, 91, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436}

// otherErrors are errors that are not retried, but for some by some operations.
var otherErrors = []int32{1, 2, 8, 13, 18, 43, 50, 63, 112, 133, 134, 150, 234, 237, 391, 8000, 11601, 13388, 10058}

// concernErrors are what a write concern error may say of a write that has been applied.
var concernErrors = []int32{64, 91, 189, 262, 10107, 11600, 11602, 13435}

// overloaded are the labels of a server that sheds load.
var overloaded = []string{"SystemOverloadedError", "RetryableError", "RetryableWriteError"}

// everywhere are the steps that suit every topology, replicas those of replica sets, and of shards,
// which are such, clusters those of clusters that can move chunks.
var (
	everywhere = []string{"closeConnections", "kill", "hang", "refuse", "reset", "cut", "drop", "garbage", "slow",
		"trickle", "hold",
		"error", "error", "otherError", "writeConcernError", "overload", "closeOnCommand", "slowCommand", "closeClient",
		"failure", "failure", "failure"}
	replicas = []string{"stepDown", "stepDown", "stepUp", "killPrimary", "hangPrimary", "partition", "partitionPrimary",
		"rollBack", "lag", "holdBack"}
	clusters = []string{"moveChunk", "moveChunk", "moveChunk"}
)

// drawStep draws a step, but not its time.
func drawStep(r *rand.Rand, p *Plan) Step {
	choice := slices.Clone(everywhere)
	switch p.Topology {
	case ReplSet:
		choice = append(append(choice, replicas...), replicas...)
	case Sharded:
		choice = append(append(choice, clusters...), replicas...)
	case LB:
		choice = append(choice, replicas...)
	}
	if p.Auth {
		choice = append(choice, "rotate", "rotate")
	}
	switch {
	case p.rotates():
		choice = append(choice, "certificate", "cutOff", "renew", "renew", "renew", "renew")
	case p.TLS:
		choice = append(choice, "certificate", "certificate", "certificate")
	}
	s := Step{Kind: pick(r, choice), Node: r.IntN(3), Client: r.IntN(len(p.Clients)), N: 1 + r.IntN(3)}
	lengths := []time.Duration{100 * time.Millisecond, time.Second, 5 * time.Second, 20 * time.Second, time.Minute}
	if p.Real {
		lengths = []time.Duration{5 * time.Millisecond, 50 * time.Millisecond, 300 * time.Millisecond, time.Second}
	}
	s.For = pick(r, lengths)
	target, code := r.IntN(4), r.IntN(1<<16)
	s.Cmds = [][]string{writes, reads, endings, every}[target]
	if r.IntN(2) == 0 {
		s.Cmds = []string{s.Cmds[r.IntN(len(s.Cmds))]}
	}
	bytes := []int{1, 3, 15, 17, 40, 100, 300, 1000, 5000}[r.IntN(9)] + r.IntN(20)
	place, exits := r.IntN(len(places)), r.IntN(2) == 0
	switch s.Kind {
	case "failure":
		s.Place, s.Exits = places[place], exits
	case "error":
		s.Code = stateErrors[code%len(stateErrors)]
	case "otherError":
		// A commit that is answered with such an error has not run, but says that it never will.
		s.Kind, s.Code = "error", otherErrors[code%len(otherErrors)]
		if target >= 2 {
			s.Cmds = slices.Concat(writes, reads)
		}
	case "writeConcernError":
		s.Code, s.Cmds = concernErrors[code%len(concernErrors)], append(slices.Clone(writes), "commitTransaction")
	case "overload":
		s.Code, s.Labels = 462, overloaded
		s.N += 3
	case "cut", "drop", "garbage":
		s.N = bytes
	}
	return s
}
