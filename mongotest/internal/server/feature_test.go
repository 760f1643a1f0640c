package server

import (
	"testing"

	"allium/mongotest/internal/args/argstest"
)

func TestFeatures(t *testing.T) { argstest.CompareFeatures(t, ChangeStreamArgs) }
