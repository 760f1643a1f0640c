module go.mongodb.org/mongo-driver/v2

go 1.26.0

require allium v0.0.0

replace allium => ../..
