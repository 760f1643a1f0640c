module allium/bson/protobuf

go 1.26.0

require (
	allium v0.0.0
	google.golang.org/protobuf v1.36.12
)

replace allium => ../../
