module allium/dropin/compare

go 1.26.0

require go.mongodb.org/mongo-driver/v2 v2.10.0

replace (
	allium => ../..
	go.mongodb.org/mongo-driver/v2 => ../v2
)
