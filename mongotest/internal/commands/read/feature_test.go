package read

import (
	"testing"

	"allium/mongotest/internal/args/argstest"
)

func TestFeatures(t *testing.T) {
	argstest.CompareFeatures(t, findArgs, getMoreArgs, aggregateArgs, countArgs, distinctArgs, mapReduceArgs)
}
