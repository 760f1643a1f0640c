module allium/bench

go 1.26

require (
	allium v0.0.0
	go.mongodb.org/mongo-driver/v2 v2.9.3
)

replace allium => ../
