*** Settings ***
Suite Setup       Setup
Suite Teardown    Teardown
Test Setup        Reset Emulation
Test Teardown     Test Teardown
Resource          ${RENODEKEYWORDS}
Resource          board.resource

*** Test Cases ***
A Memory That Is Not There Is In The Log
    Load Board    ${CASES}/missing.repl    ${FIRMWARE}    ${CASES}/small.job
    Start Emulation
    Wait For Log Entry    non existing peripheral
