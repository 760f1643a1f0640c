module mistakes

go 1.26.0

require (
	allium v0.0.0
	go.mongodb.org/mongo-driver v0.0.0
	go.mongodb.org/mongo-driver/v2 v2.10.0
)

require (
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/xdg-go/stringprep v1.0.4 // indirect
	golang.org/x/crypto v0.59.0 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/text v0.44.0 // indirect
)

replace allium => ../../../..

replace go.mongodb.org/mongo-driver => ../../../../dropin/driver1

replace go.mongodb.org/mongo-driver/v2 => ../../../../dropin/v2
