module allium/bson/decimals

go 1.26.0

require (
	allium v0.0.0
	github.com/cockroachdb/apd/v3 v3.2.3
	github.com/shopspring/decimal v1.6.0
)

replace allium => ../../
