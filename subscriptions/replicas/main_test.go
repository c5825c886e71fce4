package replicas_test

import (
	"testing"

	"commerce/subscriptions/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }
