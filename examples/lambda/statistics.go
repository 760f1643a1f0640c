package main

import (
	"context"
	"sync"
	"time"

	"allium/event"
)

// report is the function's reply. Durations are in milliseconds, and all numbers since the process
// began.
type report struct {
	Heartbeats               int     `json:"heartbeatCount"`
	FailedHeartbeats         int     `json:"heartbeatFailedCount"`
	HeartbeatDuration        float64 `json:"totalHeartbeatDurationMS"`
	AverageHeartbeatDuration float64 `json:"averageHeartbeatDurationMS"`
	Commands                 int     `json:"commandCount"`
	FailedCommands           int     `json:"commandFailedCount"`
	CommandDuration          float64 `json:"totalCommandDurationMS"`
	AverageCommandDuration   float64 `json:"averageCommandDurationMS"`
	OpenConnections          int     `json:"openConnections"`
	AwaitedHeartbeats        int     `json:"awaitedHeartbeatCount"`
}

// statistics counts what the driver does. It is safe for concurrent use.
type statistics struct {
	mu sync.Mutex
	r  report
}

func (s *statistics) count(f func(r *report)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.r)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (s *statistics) commands() *event.CommandMonitor {
	return &event.CommandMonitor{
		Succeeded: func(_ context.Context, e *event.CommandSucceeded) {
			s.count(func(r *report) { r.Commands++; r.CommandDuration += milliseconds(e.Duration) })
		},
		Failed: func(_ context.Context, e *event.CommandFailed) {
			s.count(func(r *report) { r.Commands++; r.FailedCommands++; r.CommandDuration += milliseconds(e.Duration) })
		},
	}
}

func (s *statistics) pools() *event.PoolMonitor {
	return &event.PoolMonitor{
		ConnectionCreated: func(*event.ConnectionCreated) { s.count(func(r *report) { r.OpenConnections++ }) },
		ConnectionClosed:  func(*event.ConnectionClosed) { s.count(func(r *report) { r.OpenConnections-- }) },
	}
}

func (s *statistics) servers() *event.ServerMonitor {
	awaited := func(is bool) {
		if is {
			s.count(func(r *report) { r.AwaitedHeartbeats++ })
		}
	}
	ended := func(d time.Duration) {
		s.count(func(r *report) { r.Heartbeats++; r.HeartbeatDuration += milliseconds(d) })
	}
	return &event.ServerMonitor{
		ServerHeartbeatStarted:   func(e *event.ServerHeartbeatStarted) { awaited(e.Awaited) },
		ServerHeartbeatSucceeded: func(e *event.ServerHeartbeatSucceeded) { ended(e.Duration) },
		ServerHeartbeatFailed: func(e *event.ServerHeartbeatFailed) {
			ended(e.Duration)
			s.count(func(r *report) { r.FailedHeartbeats++ })
		},
	}
}

// report returns the numbers of now.
func (s *statistics) report() *report {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.r
	if r.Heartbeats > 0 {
		r.AverageHeartbeatDuration = r.HeartbeatDuration / float64(r.Heartbeats)
	}
	if r.Commands > 0 {
		r.AverageCommandDuration = r.CommandDuration / float64(r.Commands)
	}
	return &r
}
