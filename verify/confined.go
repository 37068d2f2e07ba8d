package verify

// checkConfined refuses a state under which Codex would run commands unconfined,
// and one of which that cannot be told.
func checkConfined(state []byte) error {
	refuse := func(message string) error {
		return &Refusal{
			Code:    CodeStateUnconfined,
			Message: message,
			Hint:    "the user of the client chose a mode without a sandbox, which this server does not accept",
		}
	}
	view, err := viewState(state)
	switch {
	case err != nil:
		return refuse("what the state's permissionProfile says cannot be told: a member that is read stands twice, or is not decodable")
	case view.profileType != "managed":
		return refuse(`the state's permissionProfile.type is not "managed"`)
	case view.unrestricted():
		return refuse("the state's permissionProfile restricts neither files nor network")
	}
	return nil
}
