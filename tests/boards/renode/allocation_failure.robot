*** Settings ***
Suite Setup       Setup
Suite Teardown    Teardown
Test Setup        Reset Emulation
Test Teardown     Test Teardown
Resource          ${RENODEKEYWORDS}
Resource          board.resource

*** Test Cases ***
A Method Pool That Is Too Small Is Told With Both Sizes And The Next Load Works
    Load Board    ${CASES}/board.repl    ${FIRMWARE}    ${CASES}/allocation.job
    Every Memory Should Be There
    Watch Uart
    Start Emulation
    Wait For Lines    ${CASES}/allocation.lines
    Run Should End Well
