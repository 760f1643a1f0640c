package mongo

import (
	"allium"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
)

// mocked makes the client use a deployment of package drivertest: its server is behind a dialer.
func mocked(s *allium.ClientOptions, d driver.Deployment) {
	direct := true
	s.Hosts, s.Direct, s.ReplicaSet = []string{"localhost:27017"}, &direct, ""
	s.Dialer, s.Compressors = d, nil
	s.TLS, s.UseTLS = nil, nil
}
