package mongo

import (
	"allium"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
)

// mocked makes the client use a deployment of package drivertest: its server is behind a dialer.
func mocked(s *allium.ClientOptions, d driver.Deployment) {
	balanced := true // such a server is not monitored, so a client that is not closed leaves nothing
	s.Hosts, s.LoadBalanced, s.Direct, s.ReplicaSet = []string{"localhost:27017"}, &balanced, nil, ""
	s.Dialer, s.Compressors = d, nil
	s.TLS, s.UseTLS = nil, nil
}
