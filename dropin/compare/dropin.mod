module allium/dropin/compare

go 1.26.0

require go.mongodb.org/mongo-driver/v2 v2.10.0

require allium v0.0.0 // indirect

replace (
	allium => ../..
	go.mongodb.org/mongo-driver/v2 => ../v2
)
