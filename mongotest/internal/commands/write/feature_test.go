package write

import (
	"testing"

	"allium/mongotest/internal/args/argstest"
)

func TestFeatures(t *testing.T) {
	argstest.CompareFeatures(t, insertArgs, updateArgs, updateEntry, deleteArgs, deleteEntry, bulkArgs, bulkNamespace, findAndModifyArgs)
}
