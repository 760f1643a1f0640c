// Package address has the addresses of servers: those of version 2.
package address

import "go.mongodb.org/mongo-driver/v2/mongo/address"

// An Address is the address of a server.
type Address = address.Address
