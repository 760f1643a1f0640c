// Package unified runs the specifications' tests in the unified test format against mongotest
// deployments, or against the deployment of $MONGODB_URI: entities, operations, events and log
// messages, and the matcher of results.
package unified
